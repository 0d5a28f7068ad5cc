//! What members have said to each other, said again by whoever has listened: as it was, with a bit flipped, or cut off.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Duration,
};

use rustix::process::Signal;
use tests::{
    chance::Chance,
    cluster::{Cluster, Spec},
    network::{Network, Recorded},
    ports::Ports,
    skip::build_or_skip,
    system::System,
};

use crate::{QUICK, trial::Trial};

/// What a client of HTTP/2 begins with; what is changed comes after it.
const PREFACE: usize = 24;
/// So many at once, each for a moment.
const CALLERS: usize = 8;

/// Says it and listens until the other side has had enough, or says nothing for a while.
fn say(port: u16, bytes: &[u8]) {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return };
    stream.set_read_timeout(Some(Duration::from_millis(50))).expect("set");
    // It may hang up in the middle.
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = [0; 4096];
    // Without an end: whatever it goes on to say is enough.
    for _ in 0..4 {
        if !matches!(stream.read(&mut answer), Ok(1..)) {
            return;
        }
    }
}

fn below(chance: &mut Chance, bound: usize) -> usize {
    chance.below(bound as u64) as usize
}

/// The same again, changed at one place or not at all.
fn changed(recorded: &Recorded, chance: &mut Chance) -> Vec<u8> {
    let mut bytes = recorded.bytes.clone();
    let place = PREFACE + below(chance, bytes.len() - PREFACE);
    match chance.below(8) {
        0 => {}
        1 => bytes.truncate(place),
        _ => bytes[place] ^= 1 << chance.below(8),
    }
    bytes
}

async fn said_again(times: usize) {
    let mut chance = Chance::of_this_run();
    let Some(build) = build_or_skip(System::Node, "3.6") else { return };
    let doors = Ports::lease(3).expect("three ports");
    let flags = QUICK.map(String::from).into_iter().chain(["--snapshot-count=200".into()]).collect();
    let spec = Spec { doors: Some(doors.numbers.clone()), flags, ..Spec::new(build) };
    let cluster = Cluster::laid_out(&spec).expect("laid out");
    let ports: Vec<_> = cluster.layout.members.iter().map(|member| member.peer_port).collect();
    let ways: Vec<_> = doors.numbers.iter().copied().zip(ports.iter().copied()).collect();
    let network = Network::start(&cluster.layout, &ways).await.expect("a network");
    cluster.begin().await.expect("up");
    let trial = Trial::begin(cluster).await;
    // With a snapshot that is sent, an election, and members that start. Whom they dial in a round is theirs to say.
    let mut round = 0;
    let recorded = loop {
        let member = &trial.cluster.layout.members[round % 3];
        member.end(Signal::KILL).expect("killed");
        trial.load.more(300).await.expect("the others go on");
        member.start().expect("started");
        trial.cluster.ready().await.expect("it is back");
        let mut recorded = network.recorded();
        recorded.retain(|said| said.bytes.len() > 2 * PREFACE);
        round += 1;
        if round >= 3 && recorded.len() > 20 {
            break recorded;
        }
        assert!(round < 12, "{} connections", recorded.len());
    };
    let pids = || -> Vec<_> {
        let processes = trial.cluster.layout.members.iter().map(|member| member.process());
        processes.map(|process| process.map(|process| process.pid)).collect()
    };
    let before = pids();
    let calls: Vec<_> = (0..times)
        .map(|_| {
            let one = &recorded[below(&mut chance, recorded.len())];
            (ports[one.to], changed(one, &mut chance))
        })
        .collect();
    let shares = calls.chunks(calls.len().div_ceil(CALLERS)).map(<[_]>::to_vec);
    let callers: Vec<_> =
        shares.map(|share| thread::spawn(move || share.iter().for_each(|(port, bytes)| say(*port, bytes)))).collect();
    tokio::task::spawn_blocking(|| callers.into_iter().for_each(|caller| caller.join().expect("it has said it")))
        .await
        .expect("all have");
    assert_eq!(pids(), before, "nobody has ended");
    for member in &trial.cluster.layout.members {
        member.end(Signal::KILL).expect("killed");
        member.start().expect("started");
    }
    trial.cluster.ready().await.expect("all serve after a restart");
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_recorded_is_said_again_with_a_bit_flipped() {
    said_again(400).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: twenty seconds; the default says four hundred of them"]
async fn ten_thousand_of_them() {
    said_again(10_000).await;
}

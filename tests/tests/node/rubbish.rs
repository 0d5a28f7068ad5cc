//! What comes over the wire and is not meant for a member: rubbish on its ports, more than it takes, another cluster.

use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use rustix::process::Signal;
use tests::{
    chance::Chance,
    cluster::{Cluster, Spec},
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};
use tonic::Code;

use crate::{
    QUICK, nobody_panicked,
    trial::{Trial, agreed},
    up,
};

/// What a client of HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Sends this and reads until the other side has had enough, or says nothing for a while.
fn send(port: u16, bytes: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a member listens");
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("set");
    // It may hang up at the first byte.
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    let _ = stream.read_to_end(&mut Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn rubbish_on_both_ports_disturbs_nobody() {
    let mut chance = Chance::of_this_run();
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let trial = Trial::begin(cluster).await;
    let noise: Vec<u8> = (0..100_000).map(|_| chance.below(256) as u8).collect();
    // A frame that says it is 16 MiB long, and one of a stream that was never opened.
    let huge = [PREFACE, b"\0\0\0\x04\0\0\0\0\0", b"\xff\xff\xff\0\0\0\0\0\x01", &noise].concat();
    let stray = [PREFACE, b"\0\0\0\x04\0\0\0\0\0", b"\0\0\x05\0\x01\0\0\0\x63hello"].concat();
    for member in &trial.cluster.layout.members {
        for port in [member.client_port, member.peer_port] {
            for rubbish in
                [&noise[..], &huge, &stray, b"GET / HTTP/1.1\r\n\r\n", b"POST /baton.peer.Peer/Ask HTTP/1.0\r\n\r\n"]
            {
                send(port, rubbish);
            }
        }
    }
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_too_large_is_refused_and_nothing_else() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    for member in &cluster.layout.members {
        let client = cluster.layout.client(member).expect("a client");
        // A member takes 2 MiB at all, and half a MiB less into the log (etcd, `--max-request-bytes`).
        for (bytes, code) in
            [(1 << 20, None), (7 << 18, Some(Code::InvalidArgument)), (64 << 20, Some(Code::ResourceExhausted))]
        {
            let put = client.put("large", &"x".repeat(bytes)).await;
            let found = put.as_ref().err().map(tonic::Status::code);
            assert!(found == code, "{bytes} bytes: {put:?}");
        }
        client.put("small", "x").await.expect("written over the same connection");
    }
    agreed(&cluster).await;
    nobody_panicked(&cluster.layout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_another_cluster_is_told_so_and_disturbs_nobody() {
    let Some(build) = build_or_skip(System::Node, "3.6") else { return };
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let ours = &cluster.layout.members;
    // Its own members are itself and two of ours.
    let flags = QUICK.map(String::from).into();
    let mut stranger = Cluster::laid_out(&Spec { size: 1, flags, ..Spec::new(build) }).expect("laid out");
    let own = &mut stranger.layout.members[0];
    let peer = |name: &str, port: u16| format!("{name}=http://127.0.0.1:{port}");
    let of_both = [peer("m1", own.peer_port), peer("m2", ours[0].peer_port), peer("m3", ours[1].peer_port)].join(",");
    own.flags.retain(|flag| !flag.starts_with("--initial-cluster="));
    own.flags.push(format!("--initial-cluster={of_both}"));

    let trial = Trial::begin(cluster).await;
    own.start().expect("started");
    let ours = &trial.cluster.layout.members;
    let words = "cluster ID mismatch";
    wait::until("a member to say who called it", GENEROUS, || async {
        let log = fs::read_to_string(ours[0].log()).unwrap_or_default();
        if log.contains(words) { Ok(()) } else { Err(ours[0].last_words()) }
    })
    .await
    .expect("said");
    wait::until("the stranger to say why it finds nobody", GENEROUS, || async {
        let log = fs::read_to_string(own.log()).unwrap_or_default();
        if log.contains(words) { Ok(()) } else { Err(own.last_words()) }
    })
    .await
    .expect("said");
    trial.load.more(500).await.expect("nobody is disturbed");
    let lines = |member: &tests::cluster::Member| {
        fs::read_to_string(member.log()).unwrap_or_default().lines().filter(|line| line.contains(words)).count()
    };
    println!("said {} times, and {} times by the stranger", lines(&ours[0]), lines(own));
    assert!(lines(&ours[0]) < 10 && lines(own) < 10, "one clear error, not one for each try");
    own.end(Signal::TERM).expect("ended");
    nobody_panicked(&stranger.layout);
    trial.end().await;
}

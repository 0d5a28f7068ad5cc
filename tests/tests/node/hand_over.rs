//! A leader that is asked to end hands over first.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tests::{
    fault,
    process::Process,
    wait::GENEROUS,
    workload::{Load, Workload},
};
use tokio::process::Command;

use crate::{QUICK, nobody_panicked, up};

/// Nobody calls an election for so long: who waits for one is known from who only waits for a disk.
const ELECTION: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_asked_to_end_costs_no_other_client_an_attempt() {
    let election = format!("--election-timeout={}", ELECTION.as_millis());
    let Some(cluster) = up("3.6", &["--heartbeat-interval=200", &election]).await else { return };
    let layout = &cluster.layout;
    // Started by ourselves: only a parent is told how a process ended.
    let member = &layout.members[0];
    member.end(Signal::TERM).expect("ended");
    let log = std::fs::File::options().append(true).open(member.log()).expect("a log");
    let mut child = Command::new(member.binary()).args(&member.flags).stderr(log).spawn().expect("started");
    cluster.ready().await.expect("it is back");
    layout.make_leader(member).await.expect("it leads");

    let others: Vec<_> = layout.members[1..].iter().map(|member| member.client_url.clone()).collect();
    let load = Load { clients: 8, patience: 2 * ELECTION, ..Load::default() };
    let load = Workload::start(&others, &layout.access(), &load).expect("clients");
    load.more(200).await.expect("the load is under way");
    let process = Process::open(child.id().expect("it runs") as i32).expect("it runs");
    let since = Instant::now();
    process.signal(Signal::TERM).expect("asked");
    let status = tokio::time::timeout(GENEROUS, child.wait()).await.expect("it ends").expect("told");
    let took = since.elapsed();
    assert!(status.success() && took < ELECTION / 2, "{status} after {took:?}");
    load.more(200).await.expect("the load goes on");
    let outcome = load.finish().expect("the clients live");
    let gap = outcome.longest_write_gap;
    println!("ended after {} ms; longest gap {} ms", took.as_millis(), gap.as_millis());
    assert!(gap < ELECTION / 2, "nobody took over: no write for {gap:?}");
    assert_eq!((outcome.failed_attempts, &outcome.complaints), (0, &Default::default()));
    member.start().expect("started");
    cluster.ready().await.expect("it is back");
    let verified = outcome.verify(&layout.endpoints(), &layout.access()).await.expect("every member answers");
    assert!(verified.lost.is_empty(), "lost: {:?}", verified.lost);
    verified.history.expect("linearizable");
    nobody_panicked(layout);
}

/// Nobody can take over: it ends all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_followers_stand_still_ends_all_the_same() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let layout = &cluster.layout;
    let leader = layout.leader().await.expect("a leader");
    let others = layout.members.iter().filter(|member| member.name != leader.name);
    let others: Vec<_> = others.map(|member| member.process().expect("it runs")).collect();
    others.iter().for_each(|process| fault::freeze(process).expect("frozen"));
    leader.end(Signal::TERM).expect("it ends");
    others.iter().for_each(|process| fault::thaw(process).expect("thawed"));
    leader.start().expect("started");
    cluster.ready().await.expect("it is back");
    nobody_panicked(layout);
}

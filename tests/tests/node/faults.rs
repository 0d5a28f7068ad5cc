//! One member dies, stands still or is cut off, and the others go on.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tests::{
    cluster::{Cluster, Layout, Spec},
    fault,
    network::Network,
    ports::Ports,
    skip::build_or_skip,
    system::System,
};

use crate::{QUICK, nobody_panicked, trial::Trial, up};

/// Two elections of [`QUICK`]: whoever is away so long is not the leader any more, and the others know.
const LONG: Duration = Duration::from_millis(800);

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_is_killed() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let trial = Trial::begin(cluster).await;
    for _ in 0..3 {
        let leader = trial.cluster.layout.leader().await.expect("a leader");
        leader.end(Signal::KILL).expect("killed");
        trial.load.more(100).await.expect("another one leads");
        leader.start().expect("started");
        trial.cluster.ready().await.expect("it is back");
    }
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_and_a_follower_stand_still_and_go_on() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let trial = Trial::begin(cluster).await;
    let layout = &trial.cluster.layout;
    for leads in [true, false] {
        let leader = layout.leader().await.expect("a leader").name.clone();
        let chosen = layout.members.iter().find(|member| (member.name == leader) == leads).expect("there is one");
        let process = chosen.process().expect("it runs");
        let since = Instant::now();
        fault::freeze(&process).expect("frozen");
        trial.load.more(100).await.expect("the others go on");
        // A pause has no condition: it is as long as it is.
        tokio::time::sleep(LONG.saturating_sub(since.elapsed())).await;
        fault::thaw(&process).expect("thawed");
        trial.cluster.ready().await.expect("it is back");
        let now = &layout.leader().await.expect("a leader").name;
        assert!(!leads || *now != leader, "{leader} was away for two elections and leads");
    }
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_and_a_follower_are_cut_off_and_come_back() {
    let Some(build) = build_or_skip(System::Node, "3.6") else { return };
    let doors = Ports::lease(3).expect("three ports");
    let flags = QUICK.map(String::from).into();
    let spec = Spec { doors: Some(doors.numbers.clone()), flags, ..Spec::new(build) };
    let cluster = Cluster::laid_out(&spec).expect("laid out");
    let ports = cluster.layout.members.iter().map(|member| member.peer_port);
    let ways: Vec<_> = doors.numbers.iter().copied().zip(ports).collect();
    let network = Network::start(&cluster.layout, &ways).await.expect("a network");
    cluster.begin().await.expect("up");
    let trial = Trial::begin(cluster).await;
    let layout = &trial.cluster.layout;
    for leads in [true, false] {
        let leader = layout.leader().await.expect("a leader").name.clone();
        let chosen = layout.members.iter().position(|member| (member.name == leader) == leads).expect("there is one");
        let since = Instant::now();
        network.cut(chosen);
        stays_silent(&trial, chosen).await;
        let before = term(layout, chosen).await;
        trial.load.more(100).await.expect("the others go on");
        tokio::time::sleep(LONG.saturating_sub(since.elapsed())).await;
        // It asks before it stands for election (raft dissertation, section 9.6): so who comes back unseats nobody. The term of
        // the others tells nothing, as a slow machine makes them elect, too.
        assert_eq!(term(layout, chosen).await, before, "a member that is cut off stood for election");
        network.repair();
        trial.cluster.ready().await.expect("it is back");
    }
    trial.end().await;
}

/// The newest term that this member has heard of.
async fn term(layout: &Layout, member: usize) -> u64 {
    layout.client(&layout.members[member]).expect("a client").status().await.expect("answered").raft_term
}

/// A member without a majority answers no linearizable read: else it would tell what is no longer true.
async fn stays_silent(trial: &Trial, member: usize) {
    let layout = &trial.cluster.layout;
    let client = layout.client(&layout.members[member]).expect("a client");
    // What was confirmed just before the cut may still be answered.
    trial.load.more(20).await.expect("the others go on");
    let read = tokio::time::timeout(LONG / 2, client.get("load/0000")).await;
    assert!(!matches!(read, Ok(Ok(_))), "a member that is cut off answered {read:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_follower_sent_to_a_leader_that_stands_still_goes_to_the_next() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let layout = &cluster.layout;
    let leader = layout.leader().await.expect("a leader");
    let follower = layout.members.iter().find(|member| member.name != leader.name).expect("three");
    let client = layout.client(follower).expect("a client");
    let process = leader.process().expect("it runs");
    fault::freeze(&process).expect("frozen");
    let since = Instant::now();
    client.put("sent", "to the one that leads no more").await.expect("written");
    let waited = since.elapsed();
    fault::thaw(&process).expect("thawed");
    // An election takes half a second, and a connection that says nothing is given up after four.
    assert!(waited < Duration::from_secs(4), "the write waited for {waited:?}");
    cluster.ready().await.expect("it is back");
    nobody_panicked(layout);
}

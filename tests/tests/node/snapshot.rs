//! A member that was away for longer than the log goes back is sent a snapshot.

use std::{fs, time::Duration};

use rustix::process::Signal;
use tests::{
    cluster::Member,
    wait::{self, GENEROUS},
    workload::{Load, Workload},
};

use crate::{QUICK, nobody_panicked, trial::agreed, up};

/// Entries that stay in the log behind a snapshot (etcd, `SnapshotCatchUpEntries`), and some more.
const AWAY: u64 = 5_600;

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_was_away_for_long_is_sent_a_snapshot() {
    let flags = [&QUICK[..], &["--snapshot-count=100"]].concat();
    let Some(cluster) = up("3.6", &flags).await else { return };
    let layout = &cluster.layout;
    let leader = layout.leader().await.expect("a leader").name.clone();
    let (away, others): (Vec<_>, Vec<_>) = layout.members.iter().rev().partition(|member| {
        let first = layout.members.iter().rev().find(|member| member.name != leader);
        first.is_some_and(|first| first.name == member.name)
    });
    let away = away[0];
    away.end(Signal::KILL).expect("killed");
    let endpoints: Vec<_> = others.iter().map(|member| member.client_url.clone()).collect();
    let load = Load { clients: 64, pause: Duration::ZERO, patience: Duration::from_secs(5), ..Load::default() };
    let load = Workload::start(&endpoints, &layout.access(), &load).expect("clients");
    load.more(AWAY).await.expect("written");
    let took_in = |member: &Member| fs::read_to_string(member.log()).expect("a log").contains("takes in a snapshot");
    assert!(!took_in(away), "until now it followed the log");
    away.start().expect("started");
    // With the load under way: what comes after the snapshot has to follow it.
    wait::until("it to be sent a snapshot", GENEROUS, || async {
        if took_in(away) { Ok(()) } else { Err(away.last_words()) }
    })
    .await
    .expect("sent");
    load.more(200).await.expect("the load goes on");
    let outcome = load.finish().expect("the clients live");
    cluster.ready().await.expect("it is back");
    agreed(&cluster).await;
    let verified = outcome.verify(&layout.endpoints(), &layout.access()).await.expect("every member answers");
    assert!(verified.lost.is_empty(), "lost: {:?}", verified.lost);
    verified.history.expect("linearizable");
    nobody_panicked(layout);
}

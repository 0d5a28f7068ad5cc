//! The workload goes on while members come and go, and notices when a cluster forgets what it said.

use std::{fs, time::Duration};

use rustix::process::Signal;
use tests::{
    cluster::{Cluster, Spec},
    on_both,
    skip::build_or_skip,
    system::System,
    workload::{Load, Workload},
};

on_both! {
    a_rolling_restart_loses_nothing, etcd #[ignore = "slow: the node's row shows the same"];
    a_cluster_that_forgot_everything_is_found_out, etcd #[ignore = "slow: the node's row shows the same"];
}

fn start(cluster: &Cluster) -> Workload {
    let layout = &cluster.layout;
    Workload::start(&layout.endpoints(), &layout.access(), &Load::default()).expect("clients")
}

async fn a_rolling_restart_loses_nothing(system: System) {
    let Some(build) = build_or_skip(system, "3.5") else { return };
    let cluster = Cluster::up(&Spec::new(build)).await.expect("up");
    let workload = start(&cluster);
    workload.more(200).await.expect("under way");
    for member in &cluster.layout.members {
        member.end(Signal::KILL).expect("killed");
        member.start().expect("started");
        cluster.ready().await.expect("ready again");
        workload.more(200).await.expect("under way again");
    }
    let outcome = workload.finish().expect("an outcome");
    assert!(outcome.acked.len() >= 800, "{}", outcome.acked.len());
    assert!(outcome.failed_attempts > 0, "three kills fail no attempt?");
    assert!(outcome.longest_write_gap > Duration::ZERO && outcome.longest_write_gap < Duration::from_secs(10));
    let verified = outcome.verify(&cluster.layout.endpoints(), &cluster.layout.access()).await.expect("answers");
    assert_eq!(verified.lost, []);
    let judged = verified.history.expect("linearizable");
    assert_eq!(judged.keys, 128);
}

async fn a_cluster_that_forgot_everything_is_found_out(system: System) {
    let Some(build) = build_or_skip(system, "3.5") else { return };
    let one = Spec { size: 1, ..Spec::new(build) };
    let cluster = Cluster::up(&one).await.expect("up");
    let workload = start(&cluster);
    workload.more(100).await.expect("under way");
    let outcome = workload.finish().expect("an outcome");
    let acked = outcome.acked.len();

    let member = &cluster.layout.members[0];
    member.end(Signal::KILL).expect("killed");
    fs::remove_dir_all(member.dir.join("data")).expect("removed");
    member.start().expect("started");
    cluster.ready().await.expect("ready again");
    // Other writes take the old revisions, so that asking for them is answered.
    let client = cluster.layout.client(member).expect("a client");
    for _ in 0..acked + 1 {
        client.put("other", "x").await.expect("written");
    }

    let verified = outcome.verify(&cluster.layout.endpoints(), &cluster.layout.access()).await.expect("answers");
    assert_eq!(verified.lost.len(), acked);
    verified.history.expect_err("every key reads as nothing");
}

//! A member stands still while the cluster's version and gate change and the log is cut off: what it is sent in place of the log
//! holds both (KEP-4647, "Consensus Algorithm"; A-17 of node/KEP-4647.md).

use std::{fs, path::Path};

use proto::ClusterVersion;
use rustix::process::Signal;
use tests::{
    cluster::{Cluster, Layout},
    fault,
    member::Member,
    skip::build_or_skip,
    system::System,
};

use crate::{QUICK, downgrade::downgrade, leader_killed::decided, nobody_panicked, trial::one_state, up};

const V3_6: ClusterVersion = ClusterVersion { major: 3, minor: 6 };
const V3_7: ClusterVersion = ClusterVersion { major: 3, minor: 7 };
/// A connection that says nothing is given up after four seconds, and then the version waits: on a slow machine that may come first.
const TRIES: usize = 5;

fn said(member: &Member) -> usize {
    fs::read_to_string(member.log()).expect("a log").matches("takes in a snapshot").count()
}

/// Whether the version changed while one stood still; then that one was sent a snapshot, and the gate is the same.
async fn is_sent_what_it_missed(cluster: &Cluster, etcdctl: &Path, change: &[&str], to: ClusterVersion) -> bool {
    let layout = &cluster.layout;
    let leader = layout.leader().await.expect("a leader").clone();
    let away = layout.members.iter().find(|member| member.name != leader.name).expect("one follows");
    let others: Vec<_> = layout.members.iter().filter(|member| member.name != away.name).cloned().collect();
    let two = Layout { members: others, ..layout.clone() };
    let before = said(away);
    fault::freeze(&away.process().expect("it runs")).expect("frozen");
    let _ = downgrade(etcdctl, &leader, change);
    let client = two.client(&leader).expect("a client");
    for number in 0..300 {
        client.put(&format!("meanwhile-{number}"), "v").await.expect("two of three are there");
    }
    let now = client.versions().await.expect("answered").cluster;
    away.end(Signal::KILL).expect("killed");
    away.start().expect("started");
    cluster.ready().await.expect("it is back");
    let gate = decided(cluster, to).await;
    assert_eq!(gate.contains(&"ClusterLeaseCheckpoint".to_owned()), to == V3_7, "{gate:?}");
    one_state(cluster).await;
    now.parse() == Ok(to) && said(away) > before
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_sent_a_snapshot_across_a_version_has_its_gate() {
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let flags = [&QUICK[..], &["--snapshot-count=50", "--snapshot-catchup-entries=1"]].concat();
    let Some(cluster) = up("3.7", &flags).await else { return };
    let etcdctl = etcd.bin.join("etcdctl");
    decided(&cluster, V3_7).await;
    let (mut down, mut up) = (false, false);
    for _ in 0..TRIES {
        down |= is_sent_what_it_missed(&cluster, &etcdctl, &["enable", "3.6.0"], V3_6).await;
        up |= is_sent_what_it_missed(&cluster, &etcdctl, &["cancel"], V3_7).await;
        if down && up {
            nobody_panicked(&cluster.layout);
            return;
        }
    }
    panic!("nobody was sent a snapshot across a version: down {down}, up {up}");
}

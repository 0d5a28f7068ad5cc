//! A cluster changes its version while its members change, too, under load: one is removed, one is added and promoted, one is lost
//! (KEP-4647, "Upgrade / Downgrade Strategy", "Add a New Member", "Remove a Member").

use std::fs;

use proto::ClusterVersion;
use rustix::process::Signal;
use tests::{
    cluster::{Cluster, Spec},
    etcdctl::Etcdctl,
    member::Member,
    skip::build_or_skip,
    system::{Build, System},
    wait::{self, GENEROUS},
};

use crate::{
    QUICK,
    downgrade::{downgrade, is_fit, succeeds},
    leader_killed::decided,
    members::{add, promote, remove, start, without_the_last},
    trial::Trial,
};

const V3_6: ClusterVersion = ClusterVersion { major: 3, minor: 6 };
const V3_7: ClusterVersion = ClusterVersion { major: 3, minor: 7 };

async fn restart(cluster: &Cluster, member: &Member, build: &Build) {
    member.end(Signal::TERM).expect("ended");
    member.install(build).expect("installed");
    member.start().expect("started");
    cluster.ready().await.expect("it serves");
}

/// One of four runs the other release, one of those that do not is removed, and one that does is added; then the others follow.
async fn others_follow(trial: &mut Trial, etcdctl: &Etcdctl, mut fifth: Member, to: &Build) {
    let members = trial.cluster.layout.members.clone();
    restart(&trial.cluster, &members[0], to).await;
    trial.cluster.layout.members.remove(1);
    remove(etcdctl, &trial.cluster.layout, &members[0], &members[1]).await;
    wait::until("who is removed to end", GENEROUS, || async {
        if members[1].is_running() { Err(members[1].last_words()) } else { Ok(()) }
    })
    .await
    .expect("it was told");
    trial.load.more(50).await.expect("the load goes on");
    fifth.install(to).expect("installed");
    add(etcdctl, &trial.cluster.layout, &mut fifth, &["--learner"]).await;
    let id = start(&mut trial.cluster, fifth).await;
    promote(etcdctl, &trial.cluster.layout, id).await;
    for member in &members[2..] {
        restart(&trial.cluster, member, to).await;
    }
}

/// So many of this release, with clients at work, and one more. All want the counters, which are off by default in 3.6.0: who comes
/// as a learner may not differ from what is decided.
async fn with_one_more(version: &str, size: usize) -> Option<(Trial, Member)> {
    let build = build_or_skip(System::Node, version)?;
    let flags = QUICK.into_iter().chain(["--cluster-feature-gates=ClusterCounters=true"]).map(String::from).collect();
    let (cluster, another) = without_the_last(&Spec { flags, size: size + 1, tls: false, ..Spec::new(build) });
    cluster.begin().await.expect("up");
    Some((Trial::begin(cluster).await, another))
}

/// What is on at 3.7; the first of them at 3.6, too.
const AT_3_7: [&str; 2] = ["ClusterCounters", "ClusterLeaseCheckpoint"];

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_with_a_removal_an_addition_and_a_promotion_in_the_middle() {
    let (Some(new), Some(etcd)) = (build_or_skip(System::Node, "3.7"), build_or_skip(System::Etcd, "3.6")) else {
        return;
    };
    let Some((mut trial, fifth)) = with_one_more("3.6", 4).await else { return };
    others_follow(&mut trial, &Etcdctl::new(&etcd, None), fifth, &new).await;
    assert_eq!(decided(&trial.cluster, V3_7).await, AT_3_7);
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_downgrade_with_a_removal_an_addition_and_a_promotion_in_the_middle() {
    let (Some(old), Some(etcd)) = (build_or_skip(System::Node, "3.6"), build_or_skip(System::Etcd, "3.6")) else {
        return;
    };
    let Some((mut trial, fifth)) = with_one_more("3.7", 4).await else { return };
    assert_eq!(decided(&trial.cluster, V3_7).await, AT_3_7);
    let (etcdctl, first) = (etcd.bin.join("etcdctl"), trial.cluster.layout.members[0].clone());
    succeeds(&downgrade(&etcdctl, &first, &["enable", "3.6.0"]));
    assert_eq!(decided(&trial.cluster, V3_6).await, AT_3_7[..1]);
    for member in &trial.cluster.layout.members {
        is_fit(&trial.cluster, member, "3.6.0").await;
    }
    others_follow(&mut trial, &Etcdctl::new(&etcd, None), fifth, &old).await;
    wait::until("the downgrade to be over", GENEROUS, || async {
        let said = downgrade(&etcdctl, &first, &["validate", "3.5.0"]);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        if said.contains("job in progress") { Err(said) } else { Ok(()) }
    })
    .await
    .expect("it ends by itself");
    assert_eq!(decided(&trial.cluster, V3_6).await, AT_3_7[..1]);
    trial.end().await;
}

/// The version waits for whoever is silent, and for nobody who is no member any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_voter_that_is_lost_in_an_upgrade_is_replaced_and_the_gate_is_decided() {
    let (Some(new), Some(etcd)) = (build_or_skip(System::Node, "3.7"), build_or_skip(System::Etcd, "3.6")) else {
        return;
    };
    let etcdctl = Etcdctl::new(&etcd, None);
    let Some((mut trial, mut fourth)) = with_one_more("3.6", 3).await else { return };
    restart(&trial.cluster, &trial.cluster.layout.members[0], &new).await;
    let third = trial.cluster.layout.members.pop().expect("three");
    third.end(Signal::KILL).expect("killed");
    fs::remove_dir_all(third.dir.join("data")).expect("removed");
    restart(&trial.cluster, &trial.cluster.layout.members[1], &new).await;
    trial.load.more(100).await.expect("two of three go on");
    assert_eq!(decided(&trial.cluster, V3_6).await, AT_3_7[..1], "it waits for the third");
    let first = trial.cluster.layout.members[0].clone();
    remove(&etcdctl, &trial.cluster.layout, &first, &third).await;
    assert_eq!(decided(&trial.cluster, V3_7).await, AT_3_7);
    fourth.install(&new).expect("installed");
    add(&etcdctl, &trial.cluster.layout, &mut fourth, &["--learner"]).await;
    let id = start(&mut trial.cluster, fourth).await;
    promote(&etcdctl, &trial.cluster.layout, id).await;
    trial.cluster.ready().await.expect("three again");
    assert_eq!(decided(&trial.cluster, V3_7).await, AT_3_7);
    trial.end().await;
}

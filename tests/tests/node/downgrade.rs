//! The way down, driven by etcd's own `etcdctl`: validated, enabled, and each member restarted on the lower release once what
//! it has stored is fit for that (KEP-4647, "Cluster Online Downgrade").

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use rustix::process::Signal;
use tests::{
    cluster::Cluster,
    member::Member,
    skip::build_or_skip,
    system::{Build, System},
    wait::{self, GENEROUS},
};

use crate::{QUICK, nobody_panicked, trial::Trial, up};

const ON: &str = "--cluster-feature-gates=ClusterLeaseCheckpoint=true";

/// `etcdctl downgrade`, at one member.
pub fn downgrade(etcdctl: &Path, member: &Member, arguments: &[&str]) -> Output {
    let mut command = Command::new(etcdctl);
    command.args(["--endpoints", &member.client_url, "downgrade"]).args(arguments);
    command.output().expect("it runs")
}

pub fn succeeds(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

fn is_refused(output: &Output, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(words), "{words}: {output:?}");
}

/// What a member says of its storage, and of a downgrade under way.
async fn stored(cluster: &Cluster, member: &Member) -> (String, Option<String>) {
    let status = cluster.layout.client(member).expect("a client").status().await.expect("answered");
    let under_way = status.downgrade_info.filter(|info| info.enabled).map(|info| info.target_version);
    (status.storage_version, under_way)
}

pub async fn is_fit(cluster: &Cluster, member: &Member, version: &str) {
    wait::until(&format!("{} to store what {version} can read", member.name), GENEROUS, || async {
        let (found, _) = stored(cluster, member).await;
        if found == version { Ok(()) } else { Err(found) }
    })
    .await
    .expect("fit");
}

/// Restarts every member on another release, the leader last.
pub async fn restart_all(cluster: &Cluster, build: &Build) {
    let layout = &cluster.layout;
    let leader = layout.leader().await.expect("a leader").name.clone();
    let (last, others): (Vec<_>, Vec<_>) = layout.members.iter().partition(|member| member.name == leader);
    for member in others.into_iter().chain(last) {
        member.end(Signal::TERM).expect("ended");
        member.install(build).expect("installed");
        member.start().expect("started");
        cluster.ready().await.expect("it serves");
    }
}

/// The members whose log has etcd's words of this about a downgrade to this version.
fn have_said(cluster: &Cluster, words: &str, low: &str) -> Vec<String> {
    let said = |member: &&Member| {
        let log = fs::read_to_string(member.log()).expect("a log");
        let says = |line: &str| {
            line.contains(&format!(r#""msg":"{words}""#)) && line.contains(&format!(r#"-version":"{low}""#))
        };
        log.lines().any(says)
    };
    cluster.layout.members.iter().filter(said).map(|member| member.name.clone()).collect()
}

async fn there_and_back(high: &str, low: &str, below: &str) {
    let (Some(higher), Some(lower)) = (build_or_skip(System::Node, high), build_or_skip(System::Node, low)) else {
        return;
    };
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let etcdctl = etcd.bin.join("etcdctl");
    let Some(cluster) = up(high, &[&QUICK[..], &[ON]].concat()).await else { return };
    let (high, low) = (format!("{high}.0"), format!("{low}.0"));
    let trial = Trial::begin(cluster).await;
    let cluster = &trial.cluster;
    let (first, second) = (&cluster.layout.members[0], &cluster.layout.members[1]);

    is_refused(&downgrade(&etcdctl, first, &["validate", "three"]), "wrong downgrade target version format");
    is_refused(&downgrade(&etcdctl, first, &["validate", "3.1.0"]), "invalid downgrade target version");
    is_refused(&downgrade(&etcdctl, first, &["cancel"]), "no inflight downgrade job");
    succeeds(&downgrade(&etcdctl, first, &["validate", &low]));
    assert_eq!(stored(cluster, first).await, (high.clone(), None));

    succeeds(&downgrade(&etcdctl, second, &["enable", &low]));
    cluster.settled(lower.release.cluster_version()).await.expect("lowered");
    for member in &cluster.layout.members {
        is_fit(cluster, member, &low).await;
        assert_eq!(stored(cluster, member).await.1.as_deref(), Some(&*low), "{}", member.name);
    }
    is_refused(&downgrade(&etcdctl, first, &["enable", below]), "job in progress");

    succeeds(&downgrade(&etcdctl, first, &["cancel"]));
    cluster.settled(higher.release.cluster_version()).await.expect("an ordinary rise");
    assert_eq!(stored(cluster, first).await, (high.clone(), None));

    succeeds(&downgrade(&etcdctl, first, &["enable", &low]));
    for member in &cluster.layout.members {
        is_fit(cluster, member, &low).await;
    }
    assert_eq!(have_said(cluster, "The server is ready to downgrade", &low).len(), cluster.layout.members.len());
    assert!(
        have_said(cluster, "the cluster has been downgraded", &low).is_empty(),
        "it was cancelled once, and has not ended"
    );
    restart_all(cluster, &lower).await;
    wait::until("the downgrade to be over", GENEROUS, || async {
        let said = downgrade(&etcdctl, first, &["validate", below]);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        if said.contains("job in progress") { Err(said) } else { Ok(()) }
    })
    .await
    .expect("it ends by itself");
    assert!(!have_said(cluster, "the cluster has been downgraded", &low).is_empty());
    cluster.settled(lower.release.cluster_version()).await.expect("it stays there");

    restart_all(cluster, &higher).await;
    cluster.settled(higher.release.cluster_version()).await.expect("up again");
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_goes_from_3_6_to_3_5_and_up_again() {
    there_and_back("3.6", "3.5", "3.4.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_goes_from_3_7_to_3_6_and_up_again() {
    there_and_back("3.7", "3.6", "3.5.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lower_release_refuses_what_it_cannot_read_and_says_what_to_do() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let Some(lower) = build_or_skip(System::Node, "3.5") else { return };
    let member = &cluster.layout.members[0];
    member.end(Signal::TERM).expect("ended");
    member.install(&lower).expect("installed");
    let process = member.start().expect("started");
    process.ended(GENEROUS).expect("it does not go on");
    let words = member.last_words();
    assert!(
        words.contains("the cluster is at version 3.6, above 3.5.0") && words.contains("downgrade enable"),
        "{words}"
    );
    nobody_panicked(&cluster.layout);
}

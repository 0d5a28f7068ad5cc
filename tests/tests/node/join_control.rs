//! A member whose release, or policy, does not fit its cluster waits until it does: it does not end, it neither votes nor serves, and
//! the others go on as if it were off (etcd's proposal for join control).

use std::fs;

use proto::batonpb::{ListRequest, Member as Listed, members_client::MembersClient};
use rustix::process::Signal;
use tests::{
    cluster::{Layout, Spec},
    etcdctl::Etcdctl,
    member::Member,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};

use crate::{
    downgrade::{downgrade, restart_all, succeeds},
    members::{add, says, without_the_last},
    nobody_panicked,
    trial::agreed,
    up,
};

const WAITS: &str = "waits: this member takes no part in its cluster yet";
const STRICT: &str = "--join-policy=strict";

/// What each member says of the term and of who leads.
async fn terms(layout: &Layout) -> Vec<(u64, u64)> {
    let mut terms = Vec::new();
    for member in &layout.members {
        let status = layout.client(member).expect("a client").status().await.expect("answered");
        terms.push((status.raft_term, status.leader));
    }
    terms
}

/// Writes for as long as a few elections take; at the usual times, or one of the others may be late by itself.
async fn goes_on(layout: &Layout, by: &Member) {
    let client = layout.client(by).expect("a client");
    let began = tokio::time::Instant::now();
    while began.elapsed().as_millis() < 3_000 {
        client.put("meanwhile", "1").await.expect("written");
    }
}

/// It runs, says why it waits, and does nothing else.
async fn waits(layout: &Layout, member: &Member, why: &str) {
    says(member, WAITS).await;
    says(member, why).await;
    assert!(member.is_running(), "{}", member.last_words());
    let client = layout.client(member).expect("a client");
    client.status().await.expect_err("it serves nobody");
    let log = fs::read_to_string(member.log()).expect("a log");
    let log = &log[log.rfind(WAITS).unwrap_or_default()..];
    for words in ["\"follows\"", "\"leads\"", "ready to serve", "serving client traffic", "there is no leader"] {
        assert!(!log.contains(words), "{words}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_two_minors_below_waits_until_its_cluster_is_lowered() {
    let (Some(high), Some(middle), Some(low)) =
        (build_or_skip(System::Node, "3.7"), build_or_skip(System::Node, "3.6"), build_or_skip(System::Node, "3.5"))
    else {
        return;
    };
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let etcdctl = Etcdctl::new(&etcd, None);
    let spec = Spec { size: 4, tls: false, ..Spec::new(high.clone()) };
    let (mut cluster, mut fourth) = without_the_last(&spec);
    cluster.begin().await.expect("up");
    cluster.settled(high.release.cluster_version()).await.expect("3.7");

    add(&etcdctl, &cluster.layout, &mut fourth, &[]).await;
    let before = terms(&cluster.layout).await;
    fourth.install(&low).expect("installed");
    let process = fourth.start().expect("started");
    waits(&cluster.layout, &fourth, "it runs 3.5.0, below cluster version 3.7").await;
    goes_on(&cluster.layout, &cluster.layout.members[0]).await;
    assert_eq!(terms(&cluster.layout).await, before, "the others go on as if it were off");
    waits(&cluster.layout, &fourth, "it runs 3.5.0, below cluster version 3.7").await;

    // Though it waits, the leader hears what it runs; so the version can fall to where it fits.
    let first = cluster.layout.members[0].clone();
    succeeds(&downgrade(&etcd.bin.join("etcdctl"), &first, &["enable", "3.6.0"]));
    cluster.settled(middle.release.cluster_version()).await.expect("3.6");
    waits(&cluster.layout, &fourth, "it runs 3.5.0, below cluster version 3.6").await;
    restart_all(&cluster, &middle).await;
    wait::until("the second downgrade to be enabled", GENEROUS, || async {
        let output = downgrade(&etcd.bin.join("etcdctl"), &first, &["enable", "3.5.0"]);
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    })
    .await
    .expect("the first is over");
    says(&fourth, "\"is let in\"").await;
    assert!(fourth.is_running() && fourth.process().map(|now| now.pid) == Some(process.pid), "it was not restarted");
    cluster.layout.members.push(fourth);
    cluster.ready().await.expect("four");
    cluster.settled(low.release.cluster_version()).await.expect("3.5");
    agreed(&cluster).await;
    nobody_panicked(&cluster.layout);
}

/// Two of three that wait are no majority any more: so the policy is not the default, and only all together go on.
#[tokio::test(flavor = "multi_thread")]
async fn strict_members_wait_for_each_other_until_all_run_one_release() {
    let Some(new) = build_or_skip(System::Node, "3.6") else { return };
    let Some(cluster) = up("3.5", &[STRICT]).await else { return };
    let layout = &cluster.layout;
    layout.client(&layout.members[0]).expect("a client").put("before", "1").await.expect("written");
    let leader = layout.leader().await.expect("one leads").clone();
    let followers: Vec<_> = layout.members.iter().filter(|member| member.name != leader.name).cloned().collect();
    let stay = Layout { members: vec![leader.clone(), followers[1].clone()], ..layout.clone() };
    let before = terms(&stay).await;
    let why = "it runs 3.6.0, and a member of the cluster 3.5.0: --join-policy=strict lets in equal releases only";
    let restart = |member: &Member| {
        member.end(Signal::TERM).expect("ended");
        member.install(&new).expect("installed");
        member.start().expect("started");
    };
    restart(&followers[0]);
    waits(layout, &followers[0], why).await;
    goes_on(&stay, &leader).await;
    assert_eq!(terms(&stay).await, before, "the others go on as if it were off");
    let channel = layout.client(&leader).expect("a client").channel();
    let listed = MembersClient::new(channel).list(ListRequest {}).await.expect("listed").into_inner().members;
    let said = |member: &Listed| (member.release.clone(), member.join_policy.clone(), member.waits);
    let mut said: Vec<_> = listed.iter().map(said).collect();
    said.sort();
    let strict = |release: &str, waits| (release.to_owned(), "strict".to_owned(), waits);
    assert_eq!(said, [strict("3.5.0", false), strict("3.5.0", false), strict("3.6.0", true)]);
    restart(&followers[1]);
    waits(layout, &followers[1], why).await;
    layout.client(&leader).expect("a client").put("after", "1").await.expect_err("there is no majority");
    restart(&leader);
    cluster.ready().await.expect("all run one release");
    cluster.settled(new.release.cluster_version()).await.expect("the version rises");
    let client = layout.client(&followers[0]).expect("a client");
    assert_eq!(client.get("before").await.expect("read").expect("there").value, b"1");
    nobody_panicked(layout);
}

/// There is no leader to ask, and nobody waits for one.
#[tokio::test(flavor = "multi_thread")]
async fn a_whole_cluster_is_started_at_once_with_the_next_release() {
    let Some(new) = build_or_skip(System::Node, "3.6") else { return };
    let Some(cluster) = up("3.5", &[STRICT]).await else { return };
    let members = &cluster.layout.members;
    members.iter().for_each(|member| member.end(Signal::KILL).expect("killed"));
    for member in members {
        member.install(&new).expect("installed");
        member.start().expect("started");
    }
    cluster.ready().await.expect("up");
    cluster.settled(new.release.cluster_version()).await.expect("the version rises");
    nobody_panicked(&cluster.layout);
}

//! A release that the playbook does not allow, of the leader or of a follower: before the run, and in the
//! middle of it.

use std::collections::BTreeMap;

use rustix::process::Signal;
use tests::{
    brake::Brake,
    cluster::Member,
    rollout::{LIMIT, Rollout},
    skip::etcd_or_skip,
    standing::{Standing, is_of, until_keys},
};

use crate::{Case, down, is_refused, refused, untouched};

/// An outsider brings this member to another patch, and makes it the leader.
async fn meddle(case: &Case, member: &Member) -> Option<()> {
    let other = etcd_or_skip("3.5.1")?;
    member.install(&other).expect("installed");
    member.end(Signal::TERM).expect("ended");
    member.start().expect("started");
    case.cluster.ready().await.expect("ready again");
    case.layout().make_leader(member).await.expect("it leads");
    Some(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_another_patch_before_the_run() {
    let Some(case) = Case::set("3.5", "3.6", |_| {}).await else { return };
    let [m1, m2, _] = &case.layout().members[..] else { panic!("three members") };
    let Some(()) = meddle(&case, m2).await else { return };
    let rollout = case.begin().await;
    is_refused(&rollout, 0..3, (4, "leader_version"), &["the leader m2", "3.5.1", &case.upgrade.from]).await;
    case.layout().make_leader(m1).await.expect("it leads");
    is_refused(&rollout, 0..3, (3, "member_version"), &["m2", "3.5.1", &case.upgrade.from]).await;
    untouched(rollout).await;
}

/// A host with two members has done one and is about to take the other, when an outsider restarts
/// the leader with a wrong patch.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_of_another_patch_in_the_middle() {
    let Some(mut case) = Case::set("3.5", "3.6", |_| {}).await else { return };
    let brake = Brake::new(case.layout());
    case.upgrade.extra.push(brake.hook_after_one_step());
    let [m1, m2, m3] = &case.layout().members[..] else { panic!("three members") };
    case.layout().make_leader(m3).await.expect("it leads");
    let playbooks = [vec![m1, m2], vec![m3]].map(|members| case.upgrade.write_host(case.layout(), &members));
    let playbooks = playbooks.into_iter().collect::<Result<_, _>>().expect("playbooks");
    let rollout = Rollout::begin(case.layout(), playbooks, &case.to.release).await.expect("under way");

    let agent = rollout.start(0).expect("started");
    let is_next = |keys: &BTreeMap<_, serde_json::Value>| {
        let done = keys.get("run")?["done"].as_array()?.len();
        (done == 1 && is_of(keys.get("baton"), &agent)).then_some(())
    };
    until_keys("one to be done and the other to be next", case.layout(), is_next).await.expect("it is next");
    let Some(()) = meddle(&case, m3).await else { return };
    let before = Standing::of(case.layout()).await.expect("seen").members;
    brake.release().expect("released");

    let words = ["the leader m3", "3.5.1", &case.upgrade.from];
    refused(&[agent.ended(LIMIT).await.expect("ended")], (4, "leader_version"), &words);
    is_refused(&rollout, 0..2, (4, "leader_version"), &words).await;
    let after = Standing::of(case.layout()).await.expect("seen");
    assert_eq!(after.members, before, "nothing was stopped any more");
    assert_eq!(after.keys.keys().collect::<Vec<_>>(), ["run"], "and nobody holds anything");
    let seen = rollout.sound().await.expect("sound");
    assert_eq!((down(&seen).len(), down(&seen)[1]), (2, "m3"), "the first step, and the outsider: {:?}", seen.observed);
}

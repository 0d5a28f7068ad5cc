//! A release that the playbook does not allow, of the leader or of a follower: before the run, and in the
//! middle of it.

use rustix::process::Signal;
use tests::{brake::Brake, case::Case, cluster::Member, on_both, rollout::Ends, skip::build_or_skip, system::System};

use crate::{down, is_refused, refused, untouched};

on_both! {
    a_member_of_another_release_before_the_run, etcd #[ignore = "slow: the node's row shows the same"];
    a_leader_of_another_release_in_the_middle, etcd #[ignore = "slow: the node's row shows the same"];
}

/// Three members of 3.5 on the way to 3.6.
async fn case(system: System) -> Option<Case> {
    Some(Case::path(system, ("3.5", "3.6"), |_| {}).await?.strategy(&["join_window: 2s"]))
}

/// An outsider brings this member to a release that is not wanted, and makes it the leader.
async fn meddle(case: &Case, member: &Member) -> Option<String> {
    let other = build_or_skip(member.system, member.system.unwanted())?;
    member.install(&other).expect("installed");
    member.end(Signal::TERM).expect("ended");
    member.start().expect("started");
    case.cluster.ready().await.expect("ready again");
    case.layout().make_leader(member).await.expect("it leads");
    Some(other.release.to_string())
}

async fn a_member_of_another_release_before_the_run(system: System) {
    let Some(case) = case(system).await else { return };
    let Some(other) = meddle(&case, case.member(1)).await else { return };
    let rollout = case.begin().await;
    is_refused(&rollout, 0..3, (4, "leader_version"), &["the leader m2", &other, &rollout.upgrade.from]).await;
    rollout.layout().make_leader(rollout.member(0)).await.expect("it leads");
    is_refused(&rollout, 0..3, (3, "member_version"), &["m2", &other, &rollout.upgrade.from]).await;
    untouched(rollout).await;
}

/// A host with two members has done one and is about to take the other, when an outsider restarts
/// the leader with a wrong release.
async fn a_leader_of_another_release_in_the_middle(system: System) {
    let Some(mut case) = case(system).await else { return };
    let brake = Brake::new(case.layout());
    case.upgrade.extra.push(brake.hook_after_one_step());
    case.hosts = vec![vec![0, 1], vec![2]];
    case.layout().make_leader(case.member(2)).await.expect("it leads");
    let rollout = case.begin().await;

    let agent = rollout.start(0);
    brake.holds().await.expect("one is done and the other is next");
    let Some(other) = meddle(&rollout, rollout.member(2)).await else { return };
    let before = rollout.raft_status().await.members;
    brake.release().expect("released");

    let words = ["the leader m3", &other, &rollout.upgrade.from];
    refused(&[agent.ends().await], (4, "leader_version"), &words);
    is_refused(&rollout, 0..2, (4, "leader_version"), &words).await;
    let after = rollout.raft_status().await;
    assert_eq!(after.members, before, "nothing was stopped any more");
    assert_eq!(after.keys.keys().collect::<Vec<_>>(), ["run"], "and nobody holds anything");
    let seen = rollout.end(1).await;
    assert_eq!((down(&seen).len(), down(&seen)[1]), (2, "m3"), "the first step, and the outsider: {:?}", seen.observed);
}

//! A member that is down, or slow.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::Value;
use tests::{
    case::Case,
    ended::all_must_be,
    fault, on_both,
    rollout::{Rollout, all_end},
    system::System,
};

use crate::{case, down, is_refused};

on_both! {
    a_member_is_down_and_its_host_takes_no_part, etcd #[ignore = "slow: the node's row shows the same"];
    a_slow_member_is_waited_for, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: each look at a member that hangs takes its five seconds"]
    a_member_that_hangs_goes_first_with_its_host;
}

async fn a_member_is_down_and_its_host_takes_no_part(system: System) {
    let Some(case) = case(system, |_| {}).await else { return };
    case.member(2).end(Signal::TERM).expect("ended");
    let mut rollout = case.begin().await;
    let words = ["m3 (", "is not ready", "the host of m3 takes no part"];
    is_refused(&rollout, 0..2, (3, "member_not_ready"), &words).await;

    // With its host it is brought up first, and nobody else goes before.
    all_must_be(&rollout.together().await, 0, "done");
    let seen = rollout.done().await;
    assert_eq!((down(&seen)[0], down(&seen).len()), ("m3", 4), "down before, and once each: {:?}", seen.observed);
}

/// A follower stands still when the first agents come, and its host comes late: nobody goes meanwhile, and it
/// is not restarted before its turn.
async fn a_slow_member_is_waited_for(system: System) {
    let Some(rollout) = with_a_follower_that_hangs(system, &["join_window: 2m"]).await else { return };
    let slow = rollout.member(2).process().expect("it runs");
    let before = rollout.raft_status().await.members;
    let agents: Vec<_> = (0..2).map(|host| rollout.start(host)).collect();
    let both_wait = |keys: &BTreeMap<String, Value>| {
        let agents = keys.iter().filter(|(name, _)| name.starts_with("agents/")).map(|(_, agent)| agent);
        (agents.filter(|agent| agent["waits_for"].is_string()).count() == 2).then_some(())
    };
    rollout.until_keys("both to wait", both_wait).await;
    assert_eq!(rollout.raft_status().await.members, before, "nobody went");
    fault::thaw(&slow).expect("thawed");
    let late = rollout.start(2);
    all_must_be(&all_end(agents.into_iter().chain([late])).await, 0, "done");
    let seen = rollout.done().await;
    assert_eq!((down(&seen)[0], down(&seen).len()), ("m3", 4), "it hung, and once each: {:?}", seen.observed);
}

async fn a_member_that_hangs_goes_first_with_its_host(system: System) {
    let Some(rollout) = with_a_follower_that_hangs(system, &[]).await else { return };
    all_must_be(&rollout.all("run").await, 0, "done");
    let seen = rollout.done().await;
    // It hangs until it is started anew, and may be seen to in between.
    let mut order = down(&seen);
    order.dedup();
    assert_eq!((order[0], order.len()), ("m3", 3), "its turn was first: {:?}", seen.observed);
}

/// The last member is stopped in its tracks; with these lines under `strategy`.
async fn with_a_follower_that_hangs(system: System, strategy: &[&str]) -> Option<Rollout> {
    let case = Case::of(system).await?.strategy(strategy);
    case.layout().make_leader(case.member(0)).await.expect("it leads");
    let rollout = case.begin().await;
    fault::freeze(&rollout.member(2).process().expect("it runs")).expect("frozen");
    Some(rollout)
}

//! One voter and two: there is no majority without the one that goes down.

use tests::{ended::all_must_be, on_both, system::System};

use crate::{case, down, is_refused};

on_both! {
    one_voter_goes_down_with_leave_only, etcd #[ignore = "slow: the node's row shows the same"];
    two_voters_go_down_with_leave_only;
}

async fn needs_leave(system: System, size: usize) {
    let Some(case) = case(system, |spec| spec.size = size).await else { return };
    let mut rollout = case.begin().await;
    is_refused(&rollout, 0..size, (3, "below_quorum"), &["m", "there would be"]).await;
    rollout.upgrade.strategy.push("allow_downtime: true".into());
    all_must_be(&rollout.together().await, 0, "done");
    let seen = rollout.done().await;
    assert_eq!(down(&seen).len(), size, "{:?}", seen.observed);
}

async fn one_voter_goes_down_with_leave_only(system: System) {
    needs_leave(system, 1).await;
}

async fn two_voters_go_down_with_leave_only(system: System) {
    needs_leave(system, 2).await;
}

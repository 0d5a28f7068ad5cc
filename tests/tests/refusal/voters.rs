//! One voter and two: there is no majority without the one that goes down.

use tests::ended::all_must_be;

use crate::{case, down, is_refused};

async fn needs_leave(size: usize) {
    let Some(case) = case("3.4", "3.5", |spec| spec.size = size).await else { return };
    let mut rollout = case.begin().await;
    is_refused(&rollout, 0..size, (3, "below_quorum"), &["m", "there would be"]).await;
    rollout.upgrade.strategy.push("allow_downtime: true".into());
    rollout.write();
    all_must_be(&rollout.all("run").await, 0, "done");
    let seen = rollout.done().await;
    assert_eq!(down(&seen).len(), size, "{:?}", seen.observed);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_voter_goes_down_with_leave_only() {
    needs_leave(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_voters_go_down_with_leave_only() {
    needs_leave(2).await;
}

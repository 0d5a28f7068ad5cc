//! One voter and two: there is no majority without the one that goes down.

use crate::{Case, done, down, is_refused};

async fn needs_leave(size: usize) {
    let Some(mut case) = Case::set("3.4", "3.5", |spec| spec.size = size).await else { return };
    let rollout = case.begin().await;
    is_refused(&rollout, 0..size, (3, "below_quorum"), &["m", "there would be"]).await;
    case.upgrade.strategy.push("allow_downtime: true".into());
    case.write();
    done(&rollout.run_all().await.expect("ended"));
    let seen = rollout.done().await.expect("sound");
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

//! `agent rollback`: a run goes back while an old voter is left, with the data written meanwhile; and never
//! afterwards.

use tests::ended::{Ended, all_must_be, all_must_leave};

use super::{held, is_still_at_3_4, rollout, upgraded};

#[tokio::test(flavor = "multi_thread")]
async fn a_held_run_goes_back_on_all_hosts_and_forward_again() {
    let Some(mut rollout) = rollout(&["finalize: manual"]).await else { return };
    all_must_leave(&rollout.all("run").await, 0, "held", "held");
    let held = held(&rollout).await;

    // One host alone goes back, so the run is seen half way.
    rollout.one("rollback", (held + 1) % 3).await.must_be(0, "partial");
    assert_eq!(upgraded(&rollout).await, 1);
    let before = rollout.pids();
    for verb in ["run", "finalize", "resume"] {
        rollout.one(verb, held).await.must_be(3, "going_back");
    }
    assert_eq!(rollout.pids(), before, "nothing was touched");

    all_must_leave(&rollout.all("rollback").await, 0, "rolled_back", "done");
    assert_eq!(upgraded(&rollout).await, 0);
    is_still_at_3_4(&rollout).await;
    rollout.one("rollback", 0).await.must_be(0, "rolled_back");

    rollout.upgrade.strategy.retain(|line| line != "finalize: manual");
    rollout.write();
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    rollout.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_back_from_its_middle_but_not_from_its_end() {
    // The cluster version rises seconds later: the run stands, with no old member left.
    let Some(mut rollout) = rollout(&["convergence: { timeout: 1ms }"]).await else { return };
    rollout.one("rollback", 0).await.must_be(3, "nothing_to_roll_back");

    let leader = rollout.leader().await;
    rollout.one("run", (leader + 1) % 3).await.must_be(0, "partial");
    assert_eq!(upgraded(&rollout).await, 1);
    all_must_leave(&rollout.all("rollback").await, 0, "rolled_back", "done");
    assert_eq!(upgraded(&rollout).await, 0);
    is_still_at_3_4(&rollout).await;

    all_must_leave(&rollout.all("run").await, 5, "not_settled", "partial");
    let before = rollout.pids();
    all_must_be(&rollout.all("rollback").await, 3, "no_way_back");
    assert_eq!(rollout.pids(), before, "nothing was touched");

    rollout.upgrade.strategy.retain(|line| !line.starts_with("convergence"));
    rollout.write();
    let ended = rollout.all("run").await;
    // Whoever comes when the others have seen the cluster settle finds nothing to do.
    let is_well = |ended: &&Ended| ended.exit == Some(0) && ["done", "nothing_to_do"].contains(&ended.reason());
    assert_eq!(ended.iter().filter(is_well).count(), 3, "{ended:#?}");
    assert_eq!(rollout.pids(), before, "only the cluster had to settle");
    rollout.done().await;
}

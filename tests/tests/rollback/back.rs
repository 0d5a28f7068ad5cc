//! `agent rollback`: a run goes back while an old voter is left, with the data written meanwhile; and never
//! afterwards.

use tests::ended::{Ended, all_must_be, all_must_leave};
use tests::{on_both, rollout::Rollout, system::System};

use super::{held, is_still_at_the_old_version, rollout, upgraded};

on_both! {
    #[ignore = "slow: three minutes; a run goes back from its middle by default"]
    a_held_run_goes_back_on_all_hosts_and_forward_again;
    a_run_goes_back_from_its_middle_but_not_from_its_end, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn a_held_run_goes_back_on_all_hosts_and_forward_again(system: System) {
    let Some(mut rollout) = rollout(system, &["finalize: manual"]).await else { return };
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
    is_still_at_the_old_version(&rollout).await;
    rollout.one("rollback", 0).await.must_be(0, "rolled_back");

    rollout.upgrade.strategy.retain(|line| line != "finalize: manual");
    rollout.write();
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    rollout.done().await;
}

async fn a_run_goes_back_from_its_middle_but_not_from_its_end(system: System) {
    let Some(rollout) = rollout(system, &[]).await else { return };
    rollout.one("rollback", 0).await.must_be(3, "nothing_to_roll_back");

    let leader = rollout.leader().await;
    rollout.one("run", (leader + 1) % 3).await.must_be(0, "partial");
    assert_eq!(upgraded(&rollout).await, 1);
    all_must_leave(&rollout.all("rollback").await, 0, "rolled_back", "done");
    assert_eq!(upgraded(&rollout).await, 0);
    is_still_at_the_old_version(&rollout).await;

    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    let before = rollout.pids();
    all_must_be(&rollout.all("rollback").await, 3, "nothing_to_roll_back");
    assert_eq!(rollout.pids(), before, "nothing was touched");
    rollout.done().await;
}

/// A run whose members are all at the target, and whose cluster version had not risen when the agents ended.
async fn not_settled() -> Option<Rollout> {
    for _ in 0..10 {
        let rollout = rollout(System::Etcd, &["convergence: { timeout: 1ms }"]).await?;
        let ended = rollout.all("run").await;
        // The leader looks every few seconds, and its look may come right after the last start.
        if ended.iter().all(|ended| ended.reason() != "done") {
            all_must_leave(&ended, 5, "not_settled", "partial");
            return Some(rollout);
        }
        rollout.done().await;
    }
    panic!("the version has risen at once ten times");
}

/// Of etcd alone, whose cluster version rises seconds later: the run stands, with no old member left. The
/// bundled node's has risen by the time that anybody looks.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_not_settled_goes_on_and_not_back() {
    let Some(mut rollout) = not_settled().await else { return };
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

//! A failed step whose member is left as it is (`on_failure: stop`), and a mark that is lifted by hand.

use tests::{
    ended::{all_must_leave, one_must_fail},
    on_both,
    rollout::Rollout,
    sick::Illness,
    system::System,
};

use super::{SICK, rollout, upgraded};

on_both! {
    #[ignore = "slow: more than a minute; a mark is lifted by hand by default"]
    a_member_that_is_left_as_it_is_holds_everybody_until_it_is_mended;
    a_mark_is_lifted_by_hand_on_any_host, etcd #[ignore = "slow: a wait of the agent's own, which the node's row shows too"];
}

/// Every host's artifact exits at once; the upgrade that is written later has a sound one.
fn sicken(rollout: &Rollout) {
    let sick = rollout.sick(SICK, Illness::Exits);
    (0..3).for_each(|host| drop(rollout.write_one(host, &sick)));
}

async fn a_member_that_is_left_as_it_is_holds_everybody_until_it_is_mended(system: System) {
    let Some(rollout) = rollout(system, &["on_failure: stop"]).await else { return };
    sicken(&rollout);
    let owner = one_must_fail(&rollout.all("run").await, "step_failed");
    assert_eq!(rollout.pids().iter().filter(|pid| pid.is_none()).count(), 1, "it is left down");
    assert!(rollout.pids()[owner].is_none());
    assert!(rollout.keys().await.contains_key("step"), "its record stands");
    // No mark is lifted under a record.
    rollout.one("resume", (owner + 1) % 3).await.must_be(1, "run_failed");

    rollout.write();
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    rollout.done().await;
}

async fn a_mark_is_lifted_by_hand_on_any_host(system: System) {
    let Some(rollout) = rollout(system, &[]).await else { return };
    let before = rollout.pids();
    rollout.one("resume", 0).await.must_be(3, "nothing_to_resume");
    assert_eq!(rollout.pids(), before, "no run is begun by it");
    sicken(&rollout);
    let ended = rollout.all("run").await;
    let owner = ended.iter().position(|ended| ended.reason() == "put_back").expect("one failed");
    let other = (owner + 1) % 3;

    // The other's own artifact is sound, and a person says that it may go.
    rollout.write_one(other, &rollout.upgrade);
    rollout.one("run", other).await.must_be(1, "run_failed");
    rollout.one("resume", other).await.must_be(0, "partial");
    assert_eq!(rollout.releases().await[other], rollout.to.release.to_string());
    assert_eq!(upgraded(&rollout).await, 1);

    rollout.write();
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    rollout.done().await;
}

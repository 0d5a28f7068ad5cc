//! `finalize: manual`: the run holds before the last member until a person says so.

use tests::{ended::all_must_leave, on_both, rollout::Ends, system::System};

use super::{held, is_still_at_the_old_version, rollout, upgraded};

on_both! {
    #[ignore = "slow: more than a minute; finalize on the owner's host shows the same by default"]
    a_held_run_waits_for_a_person_and_is_finalized;
    finalize_on_the_owners_host_takes_the_last_step, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn a_held_run_waits_for_a_person_and_is_finalized(system: System) {
    let Some(rollout) = rollout(system, &["finalize: manual"]).await else { return };
    // There is nothing to finalize yet.
    rollout.one("finalize", 0).await.must_be(3, "not_held");

    all_must_leave(&rollout.all("run").await, 0, "held", "held");
    assert_eq!(upgraded(&rollout).await, 2);
    is_still_at_the_old_version(&rollout).await;
    assert!(!rollout.keys().await.contains_key("baton"), "a hold keeps no baton");
    let owner = held(&rollout).await;

    let before = rollout.pids();
    all_must_leave(&rollout.all("run").await, 0, "held", "held");
    assert_eq!(rollout.pids(), before, "nothing was touched");
    rollout.start_with("run", owner, &["--require-complete"]).ends().await.must_be(5, "incomplete");

    let other = (owner + 1) % 3;
    let approved = rollout.one("finalize", other).await;
    approved.must_be(0, "approved");
    assert!(approved.message().contains(&rollout.member(owner).name), "{approved}");
    assert!(approved.said("next").ends_with("agent run with that host's playbook"), "{approved}");
    assert_eq!(rollout.pids(), before, "saying so touches nothing");

    rollout.one("run", owner).await.must_be(0, "done");
    rollout.one("finalize", other).await.must_be(0, "nothing_to_do");
    rollout.done().await;
}

async fn finalize_on_the_owners_host_takes_the_last_step(system: System) {
    let Some(rollout) = rollout(system, &["finalize: manual"]).await else { return };
    rollout.all("run").await;
    let owner = held(&rollout).await;
    rollout.one("finalize", owner).await.must_be(0, "done");
    rollout.done().await;
}

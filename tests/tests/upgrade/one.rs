//! A cluster of one member: while that is down nobody takes a call, and nobody else keeps the agent's leases.

use tests::{case::Case, ended::all_must_be, on_both, system::System};

on_both! {
    the_only_member_soaks_and_is_done;
}

/// A soak of which the agent tells how far it is: for that it needs the member that it has just restarted.
async fn the_only_member_soaks_and_is_done(system: System) {
    let Some(case) = Case::with(system, |spec| spec.size = 1).await else { return };
    let mut case = case.strategy(&["allow_downtime: true", "soak: 3s"]);
    case.upgrade.strategy.retain(|line| line != "soak: 0s");
    let rollout = case.begin().await;
    all_must_be(&rollout.all("run").await, 0, "done");
    rollout.end(1).await;
}

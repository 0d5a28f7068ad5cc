//! One host with two members of three: its agent takes them down one after the other, like anybody.

use tests::{case::Case, ended::all_must_leave, on_both, system::System};

on_both! {
    a_host_with_two_members_of_three, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn a_host_with_two_members_of_three(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    case.hosts = vec![vec![0, 1], vec![2]];
    let rollout = case.begin().await;
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    let seen = rollout.done().await;
    assert_eq!(seen.observed.outages.len(), 3, "{:?}", seen.observed);
}

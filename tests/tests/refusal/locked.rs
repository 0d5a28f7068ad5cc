//! A second agent on one state directory.

use tests::{brake::Brake, ended::all_must_be, on_both, rollout::Ends, system::System};

use crate::{case, is_refused};

on_both! {
    a_second_agent_on_one_state_directory, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn a_second_agent_on_one_state_directory(system: System) {
    let Some(mut case) = case(system, |_| {}).await else { return };
    let brake = Brake::new(case.layout());
    case.upgrade.extra.push(brake.hook());
    let rollout = case.begin().await;
    let first = rollout.start(0);
    rollout.until_baton_is_of(&first).await;
    is_refused(&rollout, [0], (6, "state_dir_locked"), &["m1/baton"]).await;

    brake.release().expect("released");
    first.ends().await.must_be(0, "partial");
    all_must_be(&rollout.run([1, 2]).await, 0, "done");
    rollout.done().await;
}

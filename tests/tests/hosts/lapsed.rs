//! A participant that registers and dies: the others wait for its lease, and go on without it.

use rustix::process::Signal;
use tests::{ended::all_must_leave, on_both, rollout::Ends, system::System};

use crate::one_holds_the_baton;

on_both! {
    others_go_on_when_the_lease_of_a_dead_one_has_lapsed, etcd #[ignore = "slow: a wait of the agent's own, which the node's row shows too"];
}

async fn others_go_on_when_the_lease_of_a_dead_one_has_lapsed(system: System) {
    let Some((rollout, brake, (dead, agent), others)) = one_holds_the_baton(system).await else { return };
    agent.process().expect("alive").signal(Signal::KILL).expect("killed");
    assert_eq!(agent.ends().await.signal, Some(Signal::KILL.as_raw()));
    let left = rollout.keys().await;
    assert!(
        left.contains_key("baton") && left.keys().any(|key| key.starts_with("agents/")),
        "it is still there: {left:?}"
    );

    // Neither has anything but the dead one's lease to wait for.
    all_must_leave(&rollout.run(others).await, 0, "partial", "partial");
    brake.release().expect("written");
    all_must_leave(&rollout.run([dead]).await, 0, "done", "done");
    let seen = rollout.done().await;
    assert_eq!(seen.observed.outages.len(), 3, "{:?}", seen.observed);
}

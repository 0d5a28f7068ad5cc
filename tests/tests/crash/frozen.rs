//! An agent is frozen between its decision and the stop, given up by an operator, and wakes much later.
//!
//! Waiting for its lease would not be enough: a frozen agent may wake at any time and stop its member. So
//! while the sign of the step that was given up stands, nobody else takes a member down.

use rustix::process::Signal;
use tests::{
    agent::Agent,
    ended::all_must_be,
    fault::{self, Brink},
    on_both,
    process::Process,
    rollout::{Ends, LIMIT, Rollout},
    system::System,
};

use crate::{
    is_finished,
    kill::{held_at, trace},
    rollout,
    step_lock::{abandon, is_cleared},
};

on_both! {
    #[ignore = "slow: more than a minute; one that wakes after it shows more"]
    an_agent_that_wakes_before_its_last_check_stops_nothing;
    #[ignore = "slow: one that wakes after its last check shows by default that the others went on"]
    without_a_host_that_is_fenced_the_others_go_on;
    an_agent_that_wakes_after_its_last_check_is_alone, etcd #[ignore = "slow: the node's row shows the same"];
}

/// The record of *stopping*: when it is on disk, the last check is next.
const STOPPING: usize = 2;

/// The others refuse to go on, and have not touched their members.
async fn the_others_refuse(rollout: &Rollout) {
    all_must_be(&rollout.run([1, 2]).await, 3, "abandoned_member");
    assert_eq!(rollout.releases().await[1..], vec![rollout.from.release.to_string(); 2]);
}

/// Gives the frozen agent of the first host up, and wakes it when the others have refused to go on.
async fn given_up_and_woken(rollout: Rollout, frozen: Agent, thaw: impl FnOnce(&Process)) {
    let process = frozen.process().expect("it is frozen, not gone");
    let sign = abandon(&rollout, 1, "m1", &[]).await;
    the_others_refuse(&rollout).await;
    assert!(rollout.member(0).is_running(), "it was not stopped yet");

    thaw(&process);
    // They ask again while the one that woke does as it decided: refused, or made to wait.
    for ended in rollout.run([1, 2]).await {
        let is_refused = (ended.exit, ended.reason()) == (Some(3), "abandoned_member");
        assert!(is_refused || ended.exit == Some(0), "{ended}");
    }
    is_cleared(&rollout, &sign).await;
    let ended = frozen.ends().await;
    ended.must_succeed();
    assert!(!ended.warnings().contains("does not show it"), "nobody lied: {ended}");
    is_finished(rollout).await;
}

async fn an_agent_that_wakes_before_its_last_check_stops_nothing(system: System) {
    let Some(rollout) = rollout(system, &[]).await else { return };
    let agent = held_at(&rollout, 0, STOPPING).await;
    given_up_and_woken(rollout, agent, |process| fault::thaw(process).expect("thawed")).await;
}

/// Its host is dead for good, and a person says so: the others do their parts, and the host that comes back
/// after all finds its step given up.
async fn without_a_host_that_is_fenced_the_others_go_on(system: System) {
    let Some(rollout) = rollout(system, &[]).await else { return };
    let agent = held_at(&rollout, 0, STOPPING).await;
    let dead = agent.process().expect("it is frozen, not gone");
    dead.signal(Signal::KILL).expect("killed");
    drop(agent);
    let sign = abandon(&rollout, 1, "m1", &["--host-is-fenced"]).await;
    is_cleared(&rollout, &sign).await;
    all_must_be(&rollout.run([1, 2]).await, 0, "partial");
    assert!(rollout.member(0).is_running(), "it was never stopped");
    rollout.one("run", 0).await.must_succeed();
    rollout.done().await;
}

async fn an_agent_that_wakes_after_its_last_check_is_alone(system: System) {
    let Some(rollout) = rollout(system, &[]).await else { return };
    let brink = Brink { trace: trace(&rollout, 0) };
    let agent = Agent::start_under("run", &rollout.playbooks[0], &[], |argv| brink.wrap(&argv)).expect("an agent");
    let (process, at) = (agent.process().expect("it runs"), brink.clone());
    let frozen = tokio::task::spawn_blocking(move || at.freeze(&process, LIMIT)).await.expect("no panic");
    frozen.expect("frozen when all it still has to do is to send the signal");
    given_up_and_woken(rollout, agent, |process| brink.thaw(process).expect("thawed")).await;
}

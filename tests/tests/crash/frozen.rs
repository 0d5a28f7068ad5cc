//! An agent is frozen between its decision and the stop, given up by an operator, and wakes much later.
//!
//! Waiting for its lease would not be enough: a frozen agent may wake at any time and stop its member. So
//! while the sign of the take-down that was given up stands, nobody else takes a member down.

use rustix::process::Signal;
use tests::{
    agent::Agent,
    fault::{self, Brink, Moment},
    process::Process,
};

use crate::rollout::{Change, LIMIT, Rollout};

/// The others refuse to go on, and have not touched their members.
async fn the_others_refuse(rollout: &Rollout, others: [Agent; 2]) {
    for (agent, index) in others.into_iter().zip([1, 2]) {
        let ended = agent.ended(LIMIT).await.expect("an end");
        ended.must_be(3, "lost_member");
        let said = rollout.client(index).versions().await.expect("an answer").server;
        assert_eq!(said, rollout.cluster.layout.release.to_string());
    }
}

/// Gives the frozen agent of the first host up, and wakes it when the others have refused to go on.
async fn given_up_and_woken(rollout: Rollout, frozen: Agent, thaw: impl FnOnce(&Process)) {
    let process = frozen.process().expect("it is frozen, not gone");
    let sign = rollout.abandon(1, "m1", &[]).await;
    the_others_refuse(&rollout, [rollout.start(1), rollout.start(2)]).await;
    assert!(rollout.member(0).is_running(), "it was not stopped yet");

    thaw(&process);
    // They ask again while the one that woke does as it decided: refused, or made to wait.
    for (index, agent) in [1, 2].map(|index| (index, rollout.start(index))) {
        let ended = agent.ended(LIMIT).await.expect("an end");
        let is_refused = (ended.exit, ended.reason()) == (Some(3), "lost_member");
        assert!(is_refused || ended.exit == Some(0), "m{}: {ended}", index + 1);
    }
    rollout.is_gone(1, &sign).await;
    frozen.ended(LIMIT).await.expect("an end").must_succeed();
    rollout.run_everywhere().await;
    rollout.end_one_at_a_time().await;
}

/// An agent that stands where *stopping* is on disk and the last check is next.
async fn before_its_last_check(rollout: &Rollout) -> Agent {
    let cut = rollout.cut(0, 2, Moment::After);
    let agent = Agent::start_under("run", &rollout.playbooks[0], &[], |argv| cut.wrap(&argv)).expect("an agent");
    let process = agent.process().expect("it runs");
    let held = tokio::task::spawn_blocking(move || cut.hold(&process, LIMIT)).await.expect("no panic");
    assert!(held.expect("held"), "it did not come that far");
    agent
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_wakes_before_its_last_check_stops_nothing() {
    let Some(change) = Change::of_minor() else { return };
    let rollout = Rollout::begin(&change, &[]).await;
    let agent = before_its_last_check(&rollout).await;
    given_up_and_woken(rollout, agent, |process| fault::thaw(process).expect("thawed")).await;
}

/// Its host is dead for good, and a person says so: the others do their parts, and the host that comes back
/// after all finds its step given up.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_host_that_is_fenced_the_others_go_on() {
    let Some(change) = Change::of_minor() else { return };
    let rollout = Rollout::begin(&change, &[]).await;
    let agent = before_its_last_check(&rollout).await;
    let dead = agent.process().expect("it is frozen, not gone");
    dead.signal(Signal::KILL).expect("killed");
    drop(agent);
    let sign = rollout.abandon(1, "m1", &["--host-is-fenced"]).await;
    rollout.is_gone(1, &sign).await;
    for ended in [rollout.start(1), rollout.start(2)].map(|agent| agent.ended(LIMIT)) {
        let ended = ended.await.expect("an end");
        ended.must_be(0, "partial");
    }
    assert!(rollout.member(0).is_running(), "it was never stopped");
    rollout.run(0).await.must_succeed();
    rollout.end_one_at_a_time().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_wakes_after_its_last_check_is_alone() {
    let Some(change) = Change::of_minor() else { return };
    let rollout = Rollout::begin(&change, &[]).await;
    let brink = Brink { trace: rollout.trace(0) };
    let agent = Agent::start_under("run", &rollout.playbooks[0], &[], |argv| brink.wrap(&argv)).expect("an agent");
    let (process, at) = (agent.process().expect("it runs"), brink.clone());
    let frozen = tokio::task::spawn_blocking(move || at.freeze(&process, LIMIT)).await.expect("no panic");
    frozen.expect("frozen when all it still has to do is to send the signal");
    given_up_and_woken(rollout, agent, |process| brink.thaw(process).expect("thawed")).await;
}

//! SIGKILL, and then the quorum is lost too, while the agent's own member is down.

use rustix::process::Signal;
use tests::{
    ended::Ended,
    fault::Moment,
    on_both,
    rollout::Ends,
    system::System,
    wait::{self, GENEROUS},
};

use crate::{kill::kill_at, rollout};

on_both! {
    #[ignore = "slow: a minute and a half; the model searches it by default"]
    a_killed_agents_member_comes_up_first_though_there_is_no_quorum;
}

/// How long the agent waits for a quorum to judge its member by.
const PATIENCE: &str = "health: { timeout: 20s }";

async fn a_killed_agents_member_comes_up_first_though_there_is_no_quorum(system: System) {
    let Some(rollout) = rollout(system, &[PATIENCE]).await else { return };
    let others = [rollout.start(1), rollout.start(2)];
    let killed = kill_at(&rollout, 0, 4, Moment::Before).await.expect("killed while its member was down");
    assert_eq!((killed.as_str(), rollout.member(0).is_running()), ("starting forward", false));

    // The other hosts die with all that runs on them.
    others.into_iter().for_each(drop);
    for index in [1, 2] {
        rollout.member(index).end(Signal::KILL).expect("killed");
    }
    let alone = rollout.start(0);
    wait::until("the member to run again", GENEROUS, || async {
        rollout.member(0).process().map(drop).ok_or_else(|| "it does not".to_owned())
    })
    .await
    .expect("it comes up before there is a quorum");
    alone.ends().await.must_be(10, "no_quorum");
    assert!(rollout.member(0).is_running(), "an agent that can't judge its member leaves it running");

    // The hosts come back with their members down, and all of them type the same command.
    rollout.all("run").await.iter().for_each(Ended::must_succeed);
    rollout.arrives().await;
    rollout.end(3).await;
}

//! A member that does not answer: it keeps the version up, is named, and nobody goes until it is back.

use tests::{
    agent::Agent,
    ended::{Ended, all_must_be, all_must_leave},
    fault, on_both,
    process::Process,
    rollout::{LIMIT, Rollout, all_end},
    system::System,
    wait,
};

use crate::{begin, is_down};

on_both! {
    #[ignore = "slow: a minute; without its agent it is named by default"]
    frozen_before_the_run_it_keeps_all_waiting_until_it_is_back;
    #[ignore = "slow: a minute; one that is frozen before the run shows the same wait"]
    frozen_in_the_middle_it_is_named_when_the_wait_is_over;
    without_its_agent_it_is_named_and_nothing_is_enabled, etcd #[ignore = "slow: the node's row shows the same"];
}

/// Freezes a follower; its number, and its process.
async fn one_is_frozen(rollout: &Rollout) -> (usize, Process) {
    let silent = (rollout.leader().await + 1) % 3;
    let process = rollout.member(silent).process().expect("it runs");
    fault::freeze(&process).expect("frozen");
    (silent, process)
}

async fn frozen_before_the_run_it_keeps_all_waiting_until_it_is_back(system: System) {
    let Some(rollout) = begin(system).await else { return };
    let before = rollout.pids();
    let (silent, process) = one_is_frozen(&rollout).await;
    let agents: Vec<Agent> = (0..3).map(|host| rollout.start(host)).collect();
    // The downgrade is enabled, and a silent member keeps the version from being lowered.
    let named = format!("of which {} says nothing yet", rollout.member(silent).name);
    wait::until("every agent to name it", LIMIT, || async {
        let other = agents.iter().find(|agent| !agent.log().contains(&named));
        other.map_or(Ok(()), |agent| Err(agent.log()))
    })
    .await
    .expect("named");
    assert_eq!(rollout.pids(), before, "nobody goes");
    fault::thaw(&process).expect("thawed");
    all_must_leave(&all_end(agents).await, 0, "done", "done");
    is_down(rollout).await;
}

async fn frozen_in_the_middle_it_is_named_when_the_wait_is_over(system: System) {
    let Some(mut rollout) = begin(system).await else { return };
    let leader = rollout.leader().await;
    rollout.one("run", (leader + 2) % 3).await.must_be(0, "partial");
    let before = rollout.pids();
    let (silent, process) = one_is_frozen(&rollout).await;
    let strategy = rollout.upgrade.strategy.clone();
    let patience = ["stall_timeout: 6s", "health: { timeout: 5s }", "on_failure: stop"];
    rollout.upgrade.strategy.extend(patience.map(String::from));
    rollout.playbooks = rollout.write();
    let agents = rollout.all("run").await;
    all_must_be(&agents, 6, "stalled");
    let name = &rollout.member(silent).name;
    assert!(agents.iter().all(|agent: &Ended| agent.message().contains(name)), "{agents:?}");
    assert_eq!(rollout.pids(), before, "nobody went");
    fault::thaw(&process).expect("thawed");
    rollout.upgrade.strategy = strategy;
    rollout.playbooks = rollout.write();
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    is_down(rollout).await;
}

async fn without_its_agent_it_is_named_and_nothing_is_enabled(system: System) {
    let Some(rollout) = begin(system).await else { return };
    let (silent, process) = one_is_frozen(&rollout).await;
    let agents = rollout.run((0..3).filter(|host| *host != silent)).await;
    all_must_be(&agents, 3, "member_not_ready");
    let name = &rollout.member(silent).name;
    assert!(agents.iter().all(|agent: &Ended| agent.message().contains(name)), "{agents:?}");
    fault::thaw(&process).expect("thawed");
    let status = rollout.client(silent).status().await.expect("answered");
    assert!(!status.downgrade_info.is_some_and(|info| info.enabled), "nothing is enabled for a run that is refused");
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    is_down(rollout).await;
}

//! Agents that stand still within a step that changes a role, while others end it.

use std::time::Duration;

use rustix::process::Signal;
use tests::{
    agent::Agent,
    case::Case,
    ended::all_must_be,
    newcomers::Change,
    on_both,
    raft_status::is_of,
    rollout::{Ends as _, all_end},
    system::System,
};

on_both! {
    #[ignore = "slow: a lease of 30 s has to end; an agent that slept through its removal shows the same by default"]
    an_agent_that_slept_through_its_promotion_accuses_nobody;
    an_agent_that_slept_through_its_removal_accuses_nobody, etcd #[ignore = "slow: the node's row shows the same"];
}

/// A step may be over before its agent is frozen: then another one is tried.
const TRIES: usize = 5;
/// Of a step it takes a part.
const LOOKED_EVERY: Duration = Duration::from_millis(1);

/// The run stands yet when it wakes up: there is no host for the fifth.
async fn an_agent_that_slept_through_its_promotion_accuses_nobody(system: System) {
    let Some(case) = with_three(system).await else { return };
    let newcomers = case.newcomers(1);
    let coming = &newcomers.members[0];
    let (up, down) = (case.scale(&["m1", "m2", "m3", "m4", "m5"]), case.scale(&["m1", "m2", "m3"]));
    for tried in 1.. {
        let [sleeper, other] = [coming, case.member(0)].map(|member| up.start(&case, member));
        let is_within = frozen_within(&case, &sleeper, "promote").await;
        if is_within {
            other.ends().await.must_be(0, "partial");
            assert!(
                case.listed(&case.client(0)).await.contains(&("m4".to_owned(), true)),
                "another host ended the step"
            );
            thawed(&sleeper);
            sleeper.ends().await.must_be(0, "partial");
            assert_eq!(case.leftovers().await, Vec::<String>::new());
            return;
        }
        assert!(tried < TRIES, "in {TRIES} promotions no agent was frozen within its step");
        thawed(&sleeper);
        all_must_be(&all_end([sleeper, other]).await, 0, "partial");
        down.start_with(&case, coming, "run", &["--replace"]).ends().await.must_be(0, "done");
    }
}

async fn an_agent_that_slept_through_its_removal_accuses_nobody(system: System) {
    let Some(case) = with_three(system).await else { return };
    let mut newcomers = case.newcomers(1);
    let (mut going, mut coming) = (case.member(2).clone(), newcomers.members.remove(0));
    for tried in 1.. {
        let change: Change = case.replace(&going.name, &coming.name).everybody_comes();
        let [sleeper, other] = [&going, &coming].map(|member| change.start(&case, member));
        let is_within = frozen_within(&case, &sleeper, "leave").await;
        if is_within {
            other.ends().await.must_be(0, "done");
            let listed = case.listed(&case.client(0)).await;
            assert!(listed.iter().all(|(name, _)| *name != going.name), "another host ended the step: {listed:?}");
            thawed(&sleeper);
            let woken = sleeper.ends().await;
            woken.must_succeed();
            assert!(!going.is_running(), "{} is stopped for good: {woken}", going.name);
            assert_eq!(case.leftovers().await, Vec::<String>::new());
            return;
        }
        assert!(tried < TRIES, "in {TRIES} removals no agent was frozen within its step");
        thawed(&sleeper);
        all_must_be(&all_end([sleeper, other]).await, 0, "done");
        (going, coming) = (coming, going.as_newcomer());
    }
}

async fn with_three(system: System) -> Option<Case> {
    let release = system.main_job().1;
    Case::path(system, (release, release), |_| {}).await
}

fn thawed(agent: &Agent) {
    agent.process().expect("it is frozen").signal(Signal::CONT).expect("thawed");
}

/// Freezes it as soon as it has told of its step; whether that stands then.
async fn frozen_within(case: &Case, agent: &Agent, role: &str) -> bool {
    let has_locked = || agent.events().is_ok_and(|events| events.iter().any(|event| event.event == "step_locked"));
    while !has_locked() && agent.is_at_work() {
        tokio::time::sleep(LOOKED_EVERY).await;
    }
    agent.process().expect("it ends only once its step is over").signal(Signal::STOP).expect("frozen");
    let keys = case.keys().await;
    let step = keys.get("step");
    is_of(step, agent) && step.is_some_and(|step| step["role"] == role)
}

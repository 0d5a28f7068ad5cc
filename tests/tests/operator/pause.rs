//! `agent pause` and `agent resume`; and a host that waits for its window.

use tests::{
    agent::Agent,
    case::Case,
    ended::all_must_be,
    on_both,
    rollout::{Ends, LIMIT, Rollout},
    system::System,
    wait,
};

on_both! {
    a_paused_run_takes_nobody_down_until_it_is_resumed;
    a_run_that_is_paused_in_a_step_ends_the_step, etcd #[ignore = "slow: the node's row shows the same"];
    a_run_that_is_resumed_on_its_way_back_goes_back, etcd #[ignore = "slow: the node's row shows the same"];
    what_cannot_be_paused_is_said, etcd #[ignore = "slow: the node's row shows the same"];
    a_host_outside_its_window_waits_for_it, etcd #[ignore = "slow: the node's row shows the same"];
}

/// Waits until an agent says so of itself, for others to read.
pub(crate) async fn until_it_waits(agent: &Agent, words: &str) {
    wait::until("an agent to wait", LIMIT, || async {
        let events = agent.events().map_err(|error| error.to_string())?;
        let waits = events.iter().rev().find_map(|event| event.waiting_for.clone()).unwrap_or_default();
        if waits.contains(words) { Ok(()) } else { Err(format!("{waits}; {}", agent.log())) }
    })
    .await
    .expect("it waits");
}

async fn a_paused_run_takes_nobody_down_until_it_is_resumed(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let rollout = case.strategy(&["join_window: 1s"]).begin().await;
    // One host has done its part, and the run stands.
    rollout.one("run", 0).await.must_be(0, "partial");
    let pids = rollout.pids();
    let paused = rollout.start_with("pause", 1, &["--why", "lunch"]).ends().await;
    paused.must_be(0, "run_paused");
    rollout.one("pause", 2).await.must_be(0, "run_paused");
    let plan = rollout.one("plan", 1).await;
    plan.must_be(0, "planned");
    assert!(plan.said("now").contains("(lunch); `agent resume` goes on"), "{plan}");

    let waiting = [rollout.start(1), rollout.start(2)];
    for agent in &waiting {
        until_it_waits(agent, "paused on").await;
    }
    waits_say_since_when(&rollout).await;
    assert_eq!(rollout.pids(), pids, "nobody was taken down");
    // On a host where an agent waits, and where none does, it is the same command.
    rollout.one("resume", 1).await.must_be(0, "resumed");
    for agent in waiting {
        agent.ends().await.must_succeed();
    }
    rollout.one("run", 0).await.must_succeed();
    rollout.done().await;
}

/// As every agent says it in its key, and whoever looks later by the same clock.
async fn waits_say_since_when(rollout: &Rollout) {
    let status = rollout.one("status", 0).await;
    let result = status.result.as_ref().expect("a result");
    let agents = result["agents"].as_array().expect("a list");
    let waits: Vec<_> = agents.iter().filter(|agent| agent["waits_for"].is_string()).collect();
    assert!(!waits.is_empty() && waits.iter().all(|agent| agent["waits_since"].is_string()), "{status}");
    assert!(result["waiting_for"].is_string() && result["waiting_since"].is_string(), "{status}");
}

async fn a_run_that_is_paused_in_a_step_ends_the_step(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    case.upgrade.strategy.retain(|line| !line.starts_with("soak:"));
    let rollout: Rollout = case.strategy(&["join_window: 1s", "soak: 4s"]).begin().await;
    let agent = rollout.start(0);
    rollout.until_keys("a step to begin", |keys| keys.contains_key("step").then_some(())).await;
    let paused = rollout.one("pause", 1).await;
    paused.must_be(0, "run_paused");
    assert!(paused.said("left").contains("m1") && paused.said("left").contains("comes to its end"), "{paused}");
    rollout.until_keys("the step to end", |keys| (!keys.contains_key("step")).then_some(())).await;
    // What has begun is done, or was never begun: either way no member is down, and no other goes.
    until_it_waits(&agent, "paused on").await;
    rollout.one("resume", 1).await.must_succeed();
    agent.ends().await.must_succeed();
    for host in [2, 0] {
        rollout.one("run", host).await.must_succeed();
    }
    rollout.done().await;
}

async fn a_run_that_is_resumed_on_its_way_back_goes_back(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let rollout = case.strategy(&["join_window: 1s"]).begin().await;
    let leader = rollout.leader().await;
    let [first, second] = [(leader + 1) % 3, (leader + 2) % 3];
    for host in [first, second] {
        rollout.one("run", host).await.must_be(0, "partial");
    }
    rollout.one("rollback", first).await.must_be(0, "partial");
    rollout.one("pause", leader).await.must_be(0, "run_paused");
    rollout.one("resume", second).await.must_be(0, "rolled_back");
    rollout.end(1).await;
}

async fn what_cannot_be_paused_is_said(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let rollout = case.begin().await;
    rollout.one("pause", 0).await.must_be(3, "nothing_to_pause");
    rollout.one("resume", 0).await.must_be(3, "nothing_to_resume");
    rollout.end(0).await;
}

async fn a_host_outside_its_window_waits_for_it(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let mut rollout = case.strategy(&["join_window: 1s"]).begin().await;
    // It opens on the day after the day after this one, wherever this is run.
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).expect("after 1970");
    // 1970-01-01 was a Thursday.
    let today = (since.as_secs() / 86_400 + 3) % 7;
    let closed = format!("window: \"{} 00:00-01:00 UTC\"", days[(today as usize + 2) % 7]);
    let always = rollout.upgrade.clone();
    rollout.upgrade.strategy.push(closed);
    rollout.write_one(1, &rollout.upgrade);
    let pids = rollout.pids();
    let plan = rollout.one("plan", 1).await;
    plan.must_be(0, "planned");
    assert!(plan.said("now").contains("its window, which opens"), "{plan}");
    let closed = rollout.start(1);
    until_it_waits(&closed, "its window, which opens").await;
    // Nobody waits for it meanwhile.
    let others = rollout.run([0, 2]).await;
    all_must_be(&others, 0, "partial");
    let is_told =
        |agent: &tests::ended::Ended| agent.message().ends_with("the agents of m2 wait for their hosts' windows");
    assert!(others.iter().any(is_told), "{others:?}");
    assert_eq!(rollout.pids()[1], pids[1]);
    closed.process().expect("it runs").signal(rustix::process::Signal::TERM).expect("told");
    closed.ends().await.must_be(10, "interrupted");
    rollout.upgrade = always;
    rollout.write();
    rollout.one("run", 1).await.must_succeed();
    rollout.done().await;
}

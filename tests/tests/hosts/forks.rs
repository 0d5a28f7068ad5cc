//! As Ansible runs a task: on so many hosts at once, and on the next one when one of them ends.

use std::{collections::VecDeque, time::Duration};
use tests::{on_both, rollout::Ends, system::System};

use tests::ended::{Ended, all_must_leave};

use crate::rollout;

on_both! {
    #[ignore = "slow: the model and five members show the same"]
    seven_members_with_five_forks;
    nobody_waits_for_agents_that_are_not_expected, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn seven_members_with_five_forks(system: System) {
    let Some(rollout) = rollout(system, 7).await else { return };
    let mut left: VecDeque<usize> = (0..7).collect();
    let (mut working, mut ended) = (Vec::new(), Vec::new());
    while !left.is_empty() || !working.is_empty() {
        while working.len() < 5 && !left.is_empty() {
            working.extend(left.pop_front().map(|host| rollout.start(host)));
        }
        let (done, still): (Vec<_>, Vec<_>) = working.into_iter().partition(|agent| !agent.is_at_work());
        for agent in done {
            ended.push(agent.ends().await);
        }
        working = still;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(ended.iter().all(|agent| agent.exit == Some(0)), "{ended:#?}");
    assert!(ended[..2].iter().all(|agent| agent.reason() == "partial"), "{ended:#?}");
    assert_eq!(ended.last().map(Ended::reason), Some("done"), "{ended:#?}");
    let seen = rollout.done().await;
    assert_eq!(seen.observed.outages.len(), 7, "{:?}", seen.observed);
}

/// The leader's host would wait ten minutes for others; told that it is the only one, it does not.
async fn nobody_waits_for_agents_that_are_not_expected(system: System) {
    let Some(mut rollout) = rollout(system, 3).await else { return };
    rollout.upgrade.strategy.retain(|line| !line.starts_with("join_window"));
    rollout.upgrade.strategy.push("join_window: 10m".into());
    rollout.write();
    let host = rollout.leader().await;
    rollout.start_with("run", host, &["--expect-agents", "1"]).ends().await.must_be(0, "partial");
    let others = (0..3).filter(|other| *other != host);
    all_must_leave(&rollout.run(others).await, 0, "done", "done");
    rollout.done().await;
}

//! As Ansible runs a task: on so many hosts at once, and on the next one when one of them ends.

use std::{collections::VecDeque, time::Duration};

use tests::rollout::LIMIT;

use crate::{leader, rollout};

#[tokio::test(flavor = "multi_thread")]
async fn seven_members_with_five_forks() {
    let Some((_cluster, rollout)) = rollout(7, |_, _| {}).await else { return };
    let mut left: VecDeque<usize> = (0..7).collect();
    let (mut working, mut ended) = (Vec::new(), Vec::new());
    while !left.is_empty() || !working.is_empty() {
        while working.len() < 5 && !left.is_empty() {
            working.extend(left.pop_front().map(|host| rollout.start(host).expect("started")));
        }
        let (done, still): (Vec<_>, Vec<_>) = working.into_iter().partition(|agent| !agent.is_at_work());
        for agent in done {
            ended.push(agent.ended(LIMIT).await.expect("ended"));
        }
        working = still;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(ended.iter().all(|agent| agent.exit == Some(0)), "{ended:#?}");
    assert!(ended[..2].iter().all(|agent| agent.reason() == "partial"), "{ended:#?}");
    assert_eq!(ended.last().map(tests::ended::Ended::reason), Some("done"), "{ended:#?}");
    let seen = rollout.done().await.expect("sound");
    assert_eq!(seen.observed.outages.len(), 7, "{:?}", seen.observed);
}

/// The leader's host would wait a minute for others; told that it is the only one, it does not.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_agents_that_are_not_expected() {
    let gathers_long = |_: usize, upgrade: &mut tests::playbook::Upgrade| {
        upgrade.strategy.retain(|line| !line.starts_with("gather"));
        upgrade.strategy.push("gather: 10m".into());
    };
    let Some((_cluster, rollout)) = rollout(3, gathers_long).await else { return };
    let host = leader(&rollout.layout).await;
    let agent = rollout.start_with(host, &["--expect-agents", "1"]).expect("started");
    let agent = agent.ended(LIMIT).await.expect("it did not wait ten minutes");
    agent.must_be(0, "partial");
    let others = (0..3).filter(|other| *other != host);
    crate::ended(&rollout.run(others).await.expect("ended"), "done", "done");
    rollout.done().await.expect("sound");
}

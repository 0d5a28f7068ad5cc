//! One host after the other, and two at a time: each does its part and says what is left.

use crate::{ended, leader, rollout};

#[tokio::test(flavor = "multi_thread")]
async fn one_at_a_time_with_the_leaders_host_first() {
    let Some((_cluster, rollout)) = rollout(3, |_, _| {}).await else { return };
    let first = leader(&rollout.layout).await;
    let order = [first, (first + 1) % 3, (first + 2) % 3];
    for (turn, host) in order.into_iter().enumerate() {
        let (reason, cluster) = if turn < 2 { ("partial", "partial") } else { ("done", "done") };
        ended(&rollout.run([host]).await.expect("ended"), reason, cluster);
    }
    ended(&rollout.run(order).await.expect("ended"), "nothing_to_do", "done");
    let seen = rollout.done().await.expect("sound");
    let down: Vec<_> = seen.observed.outages.iter().map(|outage| outage.member.clone()).collect();
    assert_eq!(down, order.map(|host| format!("m{}", host + 1)), "each once, in its host's turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_at_a_time() {
    let Some((_cluster, rollout)) = rollout(5, |_, _| {}).await else { return };
    ended(&rollout.run([0, 1]).await.expect("ended"), "partial", "partial");
    ended(&rollout.run([2, 3]).await.expect("ended"), "partial", "partial");
    ended(&rollout.run([4]).await.expect("ended"), "done", "done");
    let seen = rollout.done().await.expect("sound");
    assert_eq!(seen.observed.outages.len(), 5, "{:?}", seen.observed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_is_not_enough_where_the_whole_is_required() {
    let Some((_cluster, rollout)) = rollout(3, |_, _| {}).await else { return };
    let agent = rollout.start_with(0, &["--require-complete"]).expect("started");
    let agent = agent.ended(tests::rollout::LIMIT).await.expect("ended");
    agent.must_be(5, "incomplete");
    ended(&rollout.run([1]).await.expect("ended"), "partial", "partial");
    let agent = rollout.start_with(2, &["--require-complete"]).expect("started");
    ended(&[agent.ended(tests::rollout::LIMIT).await.expect("ended")], "done", "done");
    rollout.done().await.expect("sound");
}

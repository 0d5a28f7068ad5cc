//! One host after the other, and two at a time: each does its part and says what is left.

use tests::{ended::all_must_leave, on_both, rollout::Ends, system::System};

use crate::rollout;

on_both! {
    one_at_a_time_with_the_leaders_host_first;
    two_at_a_time, etcd #[ignore = "slow: the node's row shows the same"];
    a_part_is_not_enough_where_the_whole_is_required, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn one_at_a_time_with_the_leaders_host_first(system: System) {
    let Some(rollout) = rollout(system, 3).await else { return };
    let first = rollout.leader().await;
    let order = [first, (first + 1) % 3, (first + 2) % 3];
    for (turn, host) in order.into_iter().enumerate() {
        let (reason, cluster) = if turn < 2 { ("partial", "partial") } else { ("done", "done") };
        all_must_leave(&rollout.run([host]).await, 0, reason, cluster);
    }
    all_must_leave(&rollout.run(order).await, 0, "nothing_to_do", "done");
    let seen = rollout.done().await;
    let down: Vec<_> = seen.observed.outages.iter().map(|outage| outage.member.clone()).collect();
    assert_eq!(down, order.map(|host| format!("m{}", host + 1)), "each once, in its host's turn");
}

async fn two_at_a_time(system: System) {
    let Some(rollout) = rollout(system, 5).await else { return };
    all_must_leave(&rollout.run([0, 1]).await, 0, "partial", "partial");
    all_must_leave(&rollout.run([2, 3]).await, 0, "partial", "partial");
    all_must_leave(&rollout.run([4]).await, 0, "done", "done");
    let seen = rollout.done().await;
    assert_eq!(seen.observed.outages.len(), 5, "{:?}", seen.observed);
}

async fn a_part_is_not_enough_where_the_whole_is_required(system: System) {
    let Some(rollout) = rollout(system, 3).await else { return };
    rollout.start_with("run", 0, &["--require-complete"]).ends().await.must_be(5, "incomplete");
    all_must_leave(&rollout.run([1]).await, 0, "partial", "partial");
    let last = rollout.start_with("run", 2, &["--require-complete"]).ends().await;
    all_must_leave(&[last], 0, "done", "done");
    rollout.done().await;
}

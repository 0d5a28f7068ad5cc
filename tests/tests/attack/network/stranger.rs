//! An endpoint of the playbook comes to be another cluster's while a run is under way, as an address that was given
//! away does. That cluster's word counts for nothing, and the run goes on.

use tests::{balancer::Balancer, case::Case, on_both, ports::Ports, rollout::Ends as _, system::System};

on_both! {
    an_endpoint_that_becomes_another_clusters_counts_as_silent, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn an_endpoint_that_becomes_another_clusters_counts_as_silent(system: System) {
    let Some(case) = Case::with(system, |_| {}).await else { return };
    let Some(other) = Case::with(system, |spec| spec.size = 1).await else { return };
    let ports = Ports::lease(1).expect("a port");
    let port = ports.numbers[0];
    let mut rollout = case.strategy(&["join_window: 60s"]).begin().await;
    let own = rollout.layout().endpoints();
    // Nobody listens there yet, so the first look refuses nothing.
    rollout.upgrade.endpoints = [own.clone(), vec![format!("http://127.0.0.1:{port}")]].concat();
    let upgrade = rollout.upgrade.clone();
    rollout.write_one(0, &upgrade);
    let first = rollout.start(0);
    rollout
        .until_keys("the first agent to take part", |keys| keys.keys().find(|key| key.starts_with("agents/")).cloned())
        .await;
    let _stranger = Balancer::start(port, vec![other.member(0).client_port]).await.expect("it listens");
    rollout.upgrade.endpoints = own;
    let upgrade = rollout.upgrade.clone();
    (1..3).for_each(|host| drop(rollout.write_one(host, &upgrade)));
    let (first, others) = tokio::join!(first.ends(), rollout.run(1..3));
    first.must_be(0, "done");
    let warnings = first.result.as_ref().map(|result| result["warnings"].to_string()).unwrap_or_default();
    assert!(warnings.contains(&format!(":{port} of cluster.endpoints belongs to cluster")), "{warnings}");
    others.iter().for_each(|agent| agent.must_be(0, "done"));
    rollout.done().await;
    assert!(other.keys().await.is_empty(), "nothing was written there");
}

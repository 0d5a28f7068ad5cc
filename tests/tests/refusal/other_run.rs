//! A run with another intent stands.

use tests::{on_both, rollout::Ends, skip::build_or_skip, system::System};

use crate::{case, is_refused};

on_both! {
    another_intent_is_refused_and_replaces_on_demand, etcd #[ignore = "slow: the node's row shows the same"];
}

/// What the first playbook wants. The bundled node has one release a minor: there only `from` will differ.
fn early(system: System) -> &'static str {
    match system {
        System::Node => system.main_job().1,
        System::Etcd => "3.5.1",
    }
}

/// One host went where nobody wants to go any more; the others' playbooks name another place, or way.
async fn another_intent_is_refused_and_replaces_on_demand(system: System) {
    let Some(mut case) = case(system, |_| {}).await else { return };
    let Some(early) = build_or_skip(system, early(system)) else { return };
    let wanted = case.upgrade.clone();
    (case.upgrade.to, case.upgrade.source) = (early.release.clone(), early.executable());
    let mut rollout = case.begin().await;
    rollout.one("run", 0).await.must_be(0, "partial");

    rollout.upgrade = wanted;
    let to = rollout.to.release.cluster_version();
    rollout.upgrade.from = format!(">={}, <{}.{}", rollout.from.release, to.major, to.minor + 1);
    rollout.write();
    let words: &[&str] = match system {
        System::Node => &["it differs in from"],
        System::Etcd => &["it differs in", "from", "to"],
    };
    for agent in is_refused(&rollout, 1..3, (6, "other_run"), words).await {
        assert!(agent.said("next").contains("agent status"), "giving it up is not what one does next: {agent}");
        assert!(agent.message().contains(&format!("in this playbook {}", rollout.upgrade.from)), "{agent}");
    }

    // What would be done is shown, and nothing is done.
    let before = rollout.raft_status().await;
    rollout.one("plan", 1).await.must_be(3, "other_run");
    let planned = rollout.start_with("plan", 1, &["--replace"]).ends().await;
    planned.must_be(0, "planned");
    assert!(planned.said("next").contains("agent run --replace"), "{planned}");
    assert_eq!(rollout.raft_status().await, before);

    rollout.start_with("run", 1, &["--replace"]).ends().await.must_be(0, "partial");
    // This playbook's run stands, so there is nothing to be replaced.
    let planned = rollout.start_with("plan", 0, &["--replace"]).ends().await;
    assert!(!planned.said("next").contains("--replace"), "{planned}");
    // The last one first: whose part is done already leaves when its window is over.
    for (host, reason) in [(2, "done"), (0, "nothing_to_do")] {
        rollout.one("run", host).await.must_be(0, reason);
    }
    rollout.done().await;
}

//! How available the cluster was, by the agents' own reads.

use tests::{case::Case, ended::all_must_be, on_both, system::System};

on_both! {
    a_run_says_how_available_the_cluster_was, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn a_run_says_how_available_the_cluster_was(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let mut rollout = case.strategy(&["join_window: 2s", "canary: true"]).begin().await;
    let agents = rollout.together().await;
    all_must_be(&agents, 0, "done");
    for agent in &agents {
        let canary = &agent.result.as_ref().expect("a result")["canary"];
        assert!(canary["reads"].as_u64().is_some_and(|reads| reads > 0), "{agent}");
        assert!(canary["longest_gap_ms"].as_u64().is_some_and(|gap| gap >= 100), "it rests between two reads: {agent}");
        assert!(canary["gap_since"].is_string() && canary["failed"].is_u64(), "{agent}");
        let told = agent.events.iter().filter(|event| event.event == "canary").count();
        assert_eq!(told, 1, "{agent}");
    }
    rollout.done().await;
}

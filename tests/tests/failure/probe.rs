//! The user's own health check of a member that was restarted (`strategy.probe`).

use std::{fs, path::PathBuf};

use tests::{
    case::Case,
    on_both,
    rollout::{Ends, LIMIT, Rollout},
    system::System,
    wait,
};

on_both! {
    a_member_waits_for_its_probe, etcd #[ignore = "slow: the node's row shows the same"];
    a_member_whose_probe_never_passes_is_put_back, etcd #[ignore = "slow: the node's row shows the same"];
}

/// With a probe that passes once this file is there.
async fn with_probe(mut case: Case) -> (Rollout, PathBuf) {
    let passes = case.layout().dir.join("passes");
    case.upgrade.strategy.push(format!("probe: [/usr/bin/test, -e, \"{}\"]", passes.display()));
    (case.strategy(&["join_window: 1s"]).begin().await, passes)
}

async fn a_member_waits_for_its_probe(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let (rollout, passes) = with_probe(case).await;
    let agent = rollout.start(0);
    let fails = wait::until("the probe to fail", LIMIT, || async {
        let events = agent.events().map_err(|error| error.to_string())?;
        let failed = events.iter().find(|event| event.event == "probe_failed").and_then(|event| event.why.clone());
        failed.ok_or_else(|| agent.log())
    });
    let why = fails.await.expect("it fails");
    assert_eq!(why, "`strategy.probe` fails: hook /usr/bin/test ended with exit 1");
    let keys = rollout.keys().await;
    assert!(keys.contains_key("step"), "its step has not ended: {keys:?}");
    fs::write(&passes, "").expect("written");
    agent.ends().await.must_be(0, "partial");
    for host in [1, 2] {
        rollout.one("run", host).await.must_succeed();
    }
    rollout.done().await;
}

async fn a_member_whose_probe_never_passes_is_put_back(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    case.upgrade.strategy.retain(|line| !line.starts_with("health:"));
    case.upgrade.strategy.push("health: { timeout: 20s }".into());
    let (rollout, passes) = with_probe(case).await;
    let ended = rollout.one("run", 0).await;
    ended.must_be(1, "put_back");
    assert!(ended.message().contains("`strategy.probe` fails: hook /usr/bin/test ended with exit 1"), "{ended}");
    assert_eq!(rollout.releases().await, vec![rollout.from.release.to_string(); 3]);
    // Under its mark the same command goes on once it passes.
    fs::write(&passes, "").expect("written");
    for host in [0, 1, 2] {
        rollout.one("run", host).await.must_succeed();
    }
    rollout.done().await;
}

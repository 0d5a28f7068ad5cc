//! Hooks around a step: what they are told, and what comes of one that fails.

use std::{fs, time::Duration};

use tests::{case::Case, on_both, system::System};

on_both! {
    before_stops_the_step_and_after_is_a_warning, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: a hook has a minute"]
    a_hook_that_hangs_fails_after_a_minute;
}

/// Two lists of one argv each.
fn hooks(before: &[&str], after: &[&str]) -> Vec<String> {
    let list = |argv: &[&str]| serde_json::to_string(&[argv]).expect("JSON");
    vec![format!("hooks: {{ before_node: {}, after_node: {} }}", list(before), list(after))]
}

async fn before_stops_the_step_and_after_is_a_warning(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let mut rollout = case.strategy(&["join_window: 10s"]).begin().await;
    let told = rollout.layout().dir.join("told").display().to_string();
    let says = ["/bin/sh", "-c", "echo \"$@\" >> \"$0\"", &told, "{{node}}", "{{version}}", "{{binary}}", "$HOME; *"];
    rollout.upgrade.extra = hooks(&["/bin/sh", "-c", "echo not now >&2; exit 3"], &["/bin/true"]);
    rollout.write();

    let before = rollout.pids();
    let refused = rollout.one("run", 0).await;
    refused.must_be(1, "hook_failed");
    let said = refused.message();
    assert!(said.contains("m1") && said.contains("not now"), "{said}");
    let keys = rollout.keys().await;
    assert!(!keys.contains_key("step") && !keys.contains_key("baton"), "{keys:?}");
    assert_eq!(rollout.pids(), before, "nothing was stopped");

    rollout.upgrade.extra = hooks(&says, &["/bin/sh", "-c", "echo no silence >&2; exit 7"]);
    rollout.write();
    for ended in rollout.all("run").await {
        ended.must_be(0, "done");
        assert!(ended.warnings().contains("no silence"), "{ended}");
    }
    let told = fs::read_to_string(&told).expect("they were told");
    let mut lines: Vec<_> = told.lines().collect();
    lines.sort_unstable();
    let expected: Vec<_> = rollout
        .layout()
        .members
        .iter()
        .map(|member| format!("{} {} {} $HOME; *", member.name, rollout.to.release, member.binary().display()))
        .collect();
    assert_eq!(lines, expected, "each once, the arguments untouched by any shell");
    rollout.done().await;
}

async fn a_hook_that_hangs_fails_after_a_minute(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    case.upgrade.extra = hooks(&["/bin/sleep", "1000"], &["/bin/true"]);
    let rollout = case.begin().await;
    let before = rollout.pids();
    let began = std::time::Instant::now();
    rollout.one("run", 0).await.must_be(1, "hook_failed");
    assert!(began.elapsed() >= Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(rollout.pids(), before, "nothing was stopped");
    rollout.end(0).await;
}

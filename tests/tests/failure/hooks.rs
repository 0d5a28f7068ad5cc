//! Hooks around a step: what they are told, and what comes of one that fails.

use std::{fs, time::Duration};

use tests::{ended::Ended, playbook::Upgrade, scene::Scene, skip::etcd_or_skip};

fn warnings(ended: &Ended) -> String {
    ended.result.as_ref().map(|result| result["warnings"].to_string()).unwrap_or_default()
}

/// Two lists of one argv each.
fn hooks(before: &[&str], after: &[&str]) -> Vec<String> {
    let list = |argv: &[&str]| serde_json::to_string(&[argv]).expect("JSON");
    vec![format!("hooks: {{ before_node: {}, after_node: {} }}", list(before), list(after))]
}

#[tokio::test(flavor = "multi_thread")]
async fn before_stops_the_step_and_after_is_a_warning() {
    let (Some(old), Some(new)) = (etcd_or_skip("3.4"), etcd_or_skip("3.5")) else { return };
    let scene = Scene::set(&old, new.release.cluster_version()).await.expect("up");
    let mut upgrade = Upgrade::new(scene.layout(), &new);
    upgrade.strategy.push("gather: 10s".into());
    let told = scene.layout().dir.join("told").display().to_string();
    let says = ["/bin/sh", "-c", "echo \"$@\" >> \"$0\"", &told, "{{node}}", "{{version}}", "{{binary}}", "$HOME; *"];
    upgrade.extra = hooks(&says, &["/bin/sh", "-c", "echo no silence >&2; exit 7"]);
    let mut playbooks = upgrade.write(scene.layout()).expect("playbooks");
    let mut failing = upgrade.clone();
    failing.extra = hooks(&["/bin/sh", "-c", "echo not now >&2; exit 3"], &["/bin/true"]);
    playbooks[0] = failing.write_one(scene.layout(), 0).expect("a playbook");

    let before = scene.pids();
    let refused = scene.one("run", &playbooks[0]).await.expect("ends");
    refused.must_be(1, "hook_failed");
    let said = refused.result.as_ref().expect("a result")["message"].to_string();
    assert!(said.contains("m1") && said.contains("not now"), "{said}");
    for key in ["down", "baton"] {
        assert!(scene.key(key).await.expect("readable").is_null(), "{key}");
    }
    assert_eq!(scene.pids(), before, "nothing was stopped");

    playbooks[0] = upgrade.write_one(scene.layout(), 0).expect("a playbook");
    let ended = scene.all("run", &playbooks).await.expect("ends");
    for ended in &ended {
        ended.must_be(0, "done");
        assert!(warnings(ended).contains("no silence"), "{ended:#?}");
    }
    let told = fs::read_to_string(&told).expect("they were told");
    let mut lines: Vec<_> = told.lines().collect();
    lines.sort_unstable();
    let expected: Vec<_> = scene
        .layout()
        .members
        .iter()
        .map(|member| format!("{} {} {} $HOME; *", member.name, new.release, member.binary().display()))
        .collect();
    assert_eq!(lines, expected, "each once, the arguments untouched by any shell");
    scene.has_settled().await.expect("the version rises");
    scene.end(1).await.expect("nothing lost");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: a hook has a minute"]
async fn a_hook_that_hangs_fails_after_a_minute() {
    let (Some(old), Some(new)) = (etcd_or_skip("3.4"), etcd_or_skip("3.5")) else { return };
    let scene = Scene::set(&old, old.release.cluster_version()).await.expect("up");
    let mut upgrade = Upgrade::new(scene.layout(), &new);
    upgrade.extra = hooks(&["/bin/sleep", "1000"], &["/bin/true"]);
    let playbooks = upgrade.write(scene.layout()).expect("playbooks");
    let before = scene.pids();
    let began = std::time::Instant::now();
    let refused = scene.one("run", &playbooks[0]).await.expect("ends");
    refused.must_be(1, "hook_failed");
    assert!(began.elapsed() >= Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(scene.pids(), before, "nothing was stopped");
    scene.end(0).await.expect("nothing lost");
}

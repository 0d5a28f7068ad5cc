//! `kind: command` with a `status` that says something else than what is so: its member is not left down (I-10).

use std::{fs, os::unix::fs::PermissionsExt as _};

use tests::{
    case::Case,
    cluster::Member,
    ended::{all_must_be, one_must_fail},
    on_both,
    playbook::quoted,
    rollout::Rollout,
    system::System,
};

on_both! {
    a_status_that_always_says_that_it_runs, etcd #[ignore = "slow: the node's row shows the same"];
    a_start_on_other_data, node #[ignore = "slow: etcd's row shows the same"];
    #[ignore = "slow: a status that always says that it runs shows the same by default"]
    a_status_that_prints_a_file_that_was_left;
    #[ignore = "slow: more than a minute; the last words of a member are told by default"]
    why_a_start_failed_is_said_of_a_member_that_stays_down;
    #[ignore = "slow: each look at it takes its ten seconds"]
    a_status_that_hangs_once_its_member_was_stopped;
}

/// A member's commands: each is a script beside it.
fn by_scripts(member: &Member) -> Vec<String> {
    let line = |verb: &str| format!("{verb}: [{}]", quoted(&member.dir.join(verb).display().to_string()));
    ["kind: command".to_owned()].into_iter().chain(["start", "stop", "status"].map(line)).collect()
}

fn script(member: &Member, verb: &str, text: &str) {
    let path = member.dir.join(verb);
    fs::write(&path, format!("#!/bin/sh\ncd {}\npid=$(cat pid)\n{text}\n", quoted(&member.dir.display().to_string())))
        .expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
}

const HONEST: &str = "[ -e /proc/$pid/exe ] || exit 3\necho $pid";

/// The cluster with all its members under scripts, of which the first's `status` is this.
async fn with_status(system: System, status: &str) -> Option<Rollout> {
    let case = scripted(system, 3).await?;
    script(&case.layout().members[0], "status", status);
    Some(case.strategy(&["join_window: 10s"]).begin().await)
}

async fn scripted(system: System, size: usize) -> Option<Case> {
    let mut case = Case::path(system, ("3.5", "3.6"), |spec| spec.size = size).await?;
    case.upgrade.runtime = by_scripts;
    for member in &case.layout().members {
        let words = member.flags.iter().map(|flag| format!(" '{flag}'")).collect::<String>();
        let run =
            format!("setsid '{}'{words} </dev/null >>'{}' 2>&1 &", member.binary().display(), member.log().display());
        script(member, "start", &format!("{run}\necho $! >pid"));
        script(member, "stop", "kill $pid\nwhile [ -e /proc/$pid/exe ]; do sleep 0.05; done\ntouch stopped");
        script(member, "status", HONEST);
        fs::write(member.dir.join("pid"), member.process().expect("it runs").pid.to_string()).expect("written");
    }
    case.upgrade.every_node = vec!["stop: { timeout: 3s, kill: true }".into()];
    Some(case)
}

/// What an only member serves nobody else contradicts, and it has the ids that it had: they are made of its URL and its token.
async fn a_start_on_other_data(system: System) {
    let Some(case) = scripted(system, 1).await else { return };
    let case = case.strategy(&["allow_downtime: true", "health: { timeout: 5s }"]);
    case.client(0).put("kept", "value").await.expect("put");
    let member = case.member(0);
    let start = fs::read_to_string(member.dir.join("start")).expect("written");
    let data = format!("--data-dir={}", member.data().display());
    assert!(start.contains(&data), "{start}");
    // Once, and then as before.
    let once = format!("if mkdir once; then\n{}\nelse\n{start}\nfi", start.replace(&data, &format!("{data}2")));
    script(member, "start", &once);
    let rollout = case.begin().await;
    let ended = rollout.one("run", 0).await;
    // It is started once more, and goes on where it was.
    ended.must_be(0, "done");
    assert!(ended.stderr.contains("it was started on other data than it had"), "{ended}");
    let kept = rollout.client(0).get("kept").await.expect("it answers");
    assert!(kept.is_some(), "it serves what it had");
    assert!(!rollout.keys().await.contains_key("step"), "its step is over");
}

async fn a_status_that_always_says_that_it_runs(system: System) {
    is_back_on_its_old_binary(system, "exit 0").await;
}

async fn a_status_that_prints_a_file_that_was_left(system: System) {
    is_back_on_its_old_binary(system, "echo $pid").await;
}

async fn is_back_on_its_old_binary(system: System, status: &str) {
    let Some(rollout) = with_status(system, status).await else { return };
    let before = rollout.pids();
    let ended = rollout.all("run").await;
    assert_eq!(one_must_fail(&ended, "step_failed"), 0);
    let said = format!("{} {}", ended[0].message(), ended[0].warnings());
    assert!(said.contains("m1 still runs, says its `status`"), "{said}");
    assert!(said.contains("nobody listens at its address: its `start` was run all the same"), "{said}");
    rollout.cluster.ready().await.expect("all are back");
    assert_ne!(rollout.pids()[0], before[0], "it was stopped, and is back");
    assert!(!rollout.keys().await.contains_key("step"), "its step is over");

    script(rollout.member(0), "status", HONEST);
    all_must_be(&rollout.all("run").await, 0, "done");
    rollout.end(1).await;
}

async fn why_a_start_failed_is_said_of_a_member_that_stays_down(system: System) {
    let Some(mut rollout) = with_status(system, "exit 0").await else { return };
    rollout.upgrade.strategy.push("health: { timeout: 5s }".into());
    rollout.write();
    let start = fs::read_to_string(rollout.member(0).dir.join("start")).expect("written");
    script(rollout.member(0), "start", "echo 'no room' >&2\nexit 5");
    let ended = rollout.all("run").await;
    let said = ended[0].message();
    assert!(said.contains("its start had failed: node m1: start ended with exit 5"), "{}", ended[0]);

    fs::write(rollout.member(0).dir.join("start"), start).expect("written");
    script(rollout.member(0), "status", HONEST);
    all_must_be(&rollout.all("run").await, 0, "done");
    rollout.end(1).await;
}

async fn a_status_that_hangs_once_its_member_was_stopped(system: System) {
    let Some(rollout) = with_status(system, &format!("[ -e stopped ] && exec sleep 1000\n{HONEST}")).await else {
        return;
    };
    let before = rollout.pids();
    let ended = rollout.all("run").await;
    assert!(ended[0].message().contains("status failed"), "{}", ended[0]);
    rollout.cluster.ready().await.expect("all are back");
    assert_ne!(rollout.pids()[0], before[0], "it was stopped, and is back");

    script(rollout.member(0), "status", HONEST);
    all_must_be(&rollout.all("run").await, 0, "done");
    rollout.end(1).await;
}

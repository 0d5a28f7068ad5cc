//! `agent guard`: a command that takes a host's members down, under the same lock as any step.

use std::{fs, path::PathBuf, process::Command};

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::{
    agent::{self, Agent},
    case::Case,
    ended::{Ended, all_must_be},
    on_both,
    rollout::{Ends as _, Rollout, all_end},
    system::System,
    wait::{self, GENEROUS},
};

on_both! {
    three_hosts_run_their_commands_one_after_the_other, node #[ignore = "slow: etcd's row shows the same"];
    a_step_outlives_its_guard_for_as_long_as_the_command_runs, etcd #[ignore = "slow: the node's row shows the same"];
    a_command_does_not_begin_where_it_would_cost_the_quorum, etcd #[ignore = "slow: the node's row shows the same"];
    a_run_and_a_guard_wait_for_each_other, etcd #[ignore = "slow: the node's row shows the same"];
}

/// A command that ends this host's member, as a restart of what it runs in would.
fn ends_member(rollout: &Rollout, host: usize) -> Vec<String> {
    let pid = rollout.pids()[host].expect("it runs");
    ["--", "/bin/kill", "-TERM"].map(String::from).into_iter().chain([pid.to_string()]).collect()
}

fn guard(rollout: &Rollout, host: usize, more: &[String]) -> Agent {
    rollout.start_with("guard", host, &more.iter().map(String::as_str).collect::<Vec<_>>())
}

async fn guarded(rollout: &Rollout, host: usize, more: &[&str]) -> Ended {
    rollout.start_with("guard", host, more).ends().await
}

/// A command that runs until its file is there; it says when it has begun.
struct Held {
    begun: PathBuf,
    end: PathBuf,
}

impl Held {
    fn new(rollout: &Rollout, name: &str) -> Self {
        let file = |what: &str| rollout.layout().dir.join(format!("{name}-{what}"));
        Self { begun: file("begun"), end: file("end") }
    }

    fn argv(&self) -> Vec<String> {
        let script = "echo x >> \"$0\"; while ! test -e \"$1\"; do sleep 0.1; done";
        let files = [&self.begun, &self.end].map(|path| path.display().to_string());
        ["--", "/bin/sh", "-c", script].map(String::from).into_iter().chain(files).collect()
    }

    fn has_begun(&self) -> bool {
        self.begun.exists()
    }

    async fn until_it_has_begun(&self) {
        let begun = wait::until("the command to begin", GENEROUS, || async {
            self.has_begun().then_some(()).ok_or_else(|| "not yet".to_owned())
        });
        begun.await.expect("it began");
    }

    fn let_end(&self) {
        fs::write(&self.end, "").expect("written");
    }

    /// How often it was begun.
    fn count(&self) -> usize {
        fs::read_to_string(&self.begun).unwrap_or_default().lines().count()
    }
}

async fn until_it_waits(agent: &Agent) {
    let waits = wait::until("it to wait", GENEROUS, || async {
        let is_told = agent.events().is_ok_and(|events| events.iter().any(|event| event.event == "waiting"));
        is_told.then_some(()).ok_or_else(|| agent.log())
    });
    waits.await.expect("it waits");
}

async fn lock(rollout: &Rollout) -> Option<Value> {
    rollout.keys().await.get("step").cloned()
}

async fn three_hosts_run_their_commands_one_after_the_other(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let rollout = case.begin().await;
    let leader = rollout.leader().await;
    let before = rollout.pids();
    let started = (0..3).map(|host| guard(&rollout, host, &ends_member(&rollout, host)));
    let ended = all_end(started.collect::<Vec<_>>()).await;
    all_must_be(&ended, 0, "guarded");
    let now = rollout.pids();
    assert!(before.iter().zip(&now).all(|(before, now)| before != now && now.is_some()), "{before:?}, then {now:?}");
    let handed_over = ended[leader].events.iter().any(|event| event.event == "handed_over");
    assert!(handed_over, "the leader's host passes leadership on first: {}", ended[leader]);
    assert!(rollout.keys().await.is_empty(), "no lock, no baton, and no run that never was");

    // One that fails is told, and its member is brought up all the same.
    let pid = now[0].expect("it runs");
    let report = rollout.layout().dir.join("report.html");
    let script = format!("echo no object; kill -TERM {pid}; exit 7");
    let failed = ["--report", report.to_str().expect("text"), "--", "/bin/sh", "-c", &script];
    let failed = guarded(&rollout, 0, &failed).await;
    failed.must_be(1, "command_failed");
    assert!(fs::read_to_string(&report).expect("written").contains("exit 7"), "its page says so");
    assert!(failed.message().contains("exit 7"), "{failed}");
    assert!(rollout.pids()[0].is_some_and(|now| now != pid) && lock(&rollout).await.is_none());

    let leader = rollout.leader().await;
    let hand_over = |host: usize| {
        let mut command = Command::new(agent::executable().expect("an agent"));
        command.args(["guard", "--output", "json", "--hand-over"]).arg(&rollout.playbooks[host]);
        let output = command.output().expect("run");
        let said: Value = serde_json::from_slice(&output.stdout).expect("an object");
        (output.status.code(), said["reason"].clone())
    };
    assert_eq!(hand_over(leader), (Some(0), json!("handed_over")));
    assert_ne!(rollout.leader().await, leader);
    assert_eq!(hand_over(leader), (Some(0), json!("nothing_to_do")));
    rollout.end(1).await;
}

async fn a_step_outlives_its_guard_for_as_long_as_the_command_runs(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let rollout = case.begin().await;
    let host = (rollout.leader().await + 1) % 3;
    let other = (host + 1) % 3;
    let held = Held::new(&rollout, "held");
    let first = guard(&rollout, host, &held.argv());
    held.until_it_has_begun().await;
    first.process().expect("it runs").signal(Signal::TERM).expect("signalled");
    guarded(&rollout, other, &["--check"]).await.must_be(6, "not_yet");
    assert!(first.is_at_work(), "a signal does not end a step whose command runs");
    let record = lock(&rollout).await.expect("a lock");
    assert_eq!(record["guarded"], json!({ "beside": [], "command": "sh" }), "{record}");

    first.process().expect("it runs").signal(Signal::KILL).expect("killed");
    first.ends().await;
    // Whoever has another state directory does not know the command, and takes nothing over in this boot.
    let (state, aside) = (rollout.member(host).state_dir(), rollout.layout().dir.join("aside"));
    fs::create_dir(&aside).expect("made");
    for file in ["journal", "host-id"] {
        fs::rename(state.join(file), aside.join(file)).expect("moved");
    }
    let refused = guarded(&rollout, host, &["--finish"]).await;
    refused.must_be(3, "step_of_another");
    assert!(refused.message().contains("it may still run"), "{refused}");
    for file in ["journal", "host-id"] {
        fs::rename(aside.join(file), state.join(file)).expect("moved back");
    }
    // Who only asks does not wait.
    guarded(&rollout, host, &["--check"]).await.must_be(6, "not_yet");
    // Neither the same command again nor the unit at boot ends what still runs.
    let finish = guard(&rollout, host, &["--finish".to_owned()]);
    let (waiting, next) = (Held::new(&rollout, "next"), other);
    let waits = guard(&rollout, next, &waiting.argv());
    until_it_waits(&waits).await;
    assert!(finish.is_at_work() && lock(&rollout).await.as_ref() == Some(&record) && !waiting.has_begun());
    held.let_end();
    finish.ends().await.must_be(0, "guarded");
    assert_eq!(held.count(), 1, "nobody begins it again");
    waiting.until_it_has_begun().await;
    waiting.let_end();
    waits.ends().await.must_be(0, "guarded");
    guarded(&rollout, host, &["--finish"]).await.must_be(0, "nothing_to_do");
    assert!(rollout.keys().await.is_empty());
    rollout.end(0).await;
}

async fn a_command_does_not_begin_where_it_would_cost_the_quorum(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let rollout = case.strategy(&["join_window: 1s"]).begin().await;
    let held = Held::new(&rollout, "held");
    let argv = held.argv();
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    guarded(&rollout, 0, &["--check"]).await.must_be(0, "may_go");
    rollout.member(2).end(Signal::KILL).expect("killed");
    for more in [&words[..], &["--check"]] {
        let refused = guarded(&rollout, 0, more).await;
        refused.must_be(3, "member_not_ready");
        assert!(refused.message().contains(&rollout.member(2).name), "{refused}");
    }
    // The host of what is down may go: that may be the cure. It starts what is down first.
    guarded(&rollout, 2, &["--", "/bin/true"]).await.must_be(0, "guarded");
    assert!(!held.has_begun() && rollout.pids()[2].is_some());

    rollout.member(2).end(Signal::KILL).expect("killed");
    let patient = guard(&rollout, 0, &[vec!["--wait".to_owned(), "10m".to_owned()], argv].concat());
    guarded(&rollout, 2, &["--finish"]).await.must_succeed();
    held.until_it_has_begun().await;
    held.let_end();
    patient.ends().await.must_be(0, "guarded");

    let missing = guarded(&rollout, 0, &["--", "/no/such/program"]).await;
    missing.must_be(2, "usage");
    assert!(missing.message().contains("/no/such/program"), "{missing}");
    assert!(rollout.keys().await.is_empty());
    rollout.end(1).await;
}

/// Neither is a part of the other: the run ends its part, the guard goes, and the run goes on.
async fn a_run_and_a_guard_wait_for_each_other(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let rollout = case.strategy(&["join_window: 2s"]).begin().await;
    let held = Held::new(&rollout, "held");
    let first = guard(&rollout, 2, &held.argv());
    held.until_it_has_begun().await;
    let runs = [rollout.start(0), rollout.start(1)];
    for run in &runs {
        until_it_waits(run).await;
    }
    held.let_end();
    first.ends().await.must_be(0, "guarded");
    // A guard that comes meanwhile waits for the run's hosts, and they do not wait for its host.
    let second = guard(&rollout, 2, &["--".to_owned(), "/bin/true".to_owned()]);
    for run in runs {
        run.ends().await.must_be(0, "partial");
    }
    second.ends().await.must_be(0, "guarded");
    rollout.one("run", 2).await.must_be(0, "done");
    rollout.done().await;
}

//! Hosts that are held for the members they carry: adopted, kept, drained.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::{
    agent,
    case::Case,
    ended::all_must_be,
    newcomers::Change,
    on_both, raft_status,
    rollout::{Ends as _, LIMIT, all_end},
    system::System,
    wait,
};

on_both! {
    a_held_host_goes_once_its_replacement_votes, etcd #[ignore = "slow: the node's row shows the same"];
    a_drain_does_not_take_a_record_that_is_gone_for_a_member_that_is, etcd #[ignore = "slow: the node's row shows the same"];
    a_newcomer_on_a_host_that_is_to_go_is_taken_back, etcd #[ignore = "slow: the node's row shows the same"];
}

/// What a verb says of these arguments: its exit code and its object.
fn said(verb: &[&str], playbook: &Path, more: &[&str]) -> (i32, Value) {
    let mut command = Command::new(agent::executable().expect("an agent"));
    let output = command.args(verb).arg(playbook).args(more).args(["--output", "json"]).output().expect("run");
    let object = serde_json::from_slice(&output.stdout).expect("an object");
    (output.status.code().expect("a code"), object)
}

fn must_be(found: (i32, Value), exit: i32, reason: &str) -> Value {
    assert_eq!((found.0, found.1["reason"].as_str()), (exit, Some(reason)), "{}", found.1);
    found.1
}

/// The first record of a host that is as wanted.
async fn record(case: &Case, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
    let keys = raft_status::keys(case.layout()).await.expect("the keys");
    keys.into_iter().find(|(key, record)| key.starts_with("hosts/") && wanted(record)).map(|(_, record)| record)
}

async fn with_three(system: System) -> Option<Case> {
    let release = system.main_job().1;
    Case::path(system, (release, release), |_| {}).await
}

fn adopt_all(case: &Case, change: &Change) {
    for member in &case.layout().members {
        must_be(said(&["adopt"], &change.write(case, &[member]), &[]), 0, "adopted");
    }
}

async fn a_held_host_goes_once_its_replacement_votes(system: System) {
    let Some(case) = with_three(system).await else { return };
    let newcomers = case.newcomers(1);
    let rollout = case.begin().await;
    let case = &*rollout;
    let change = case.replace("m1", "m4");
    let (m1, m4) = (case.member(0), &newcomers.members[0]);
    let playbook = change.write(case, &[m1]);
    must_be(said(&["drain"], &playbook, &["m1", "--check"]), 2, "no_such_host");
    adopt_all(case, &change);
    must_be(said(&["adopt"], &playbook, &[]), 0, "nothing_to_do");

    // Marked, and nothing more: without a replacement it stays.
    let object = must_be(said(&["drain"], &playbook, &["m1", "--wait", "1s", "--why", "it is old"]), 3, "host_held");
    assert!(object["message"].as_str().is_some_and(|message| message.contains("carries m1")), "{object}");
    assert_eq!(case.listed(&case.client(1)).await.len(), 3);

    // Somebody else keeps it, too.
    let owner = ["--owner", "ops"];
    must_be(said(&["hold", "add"], &playbook, &["m1", "backup", owner[0], owner[1]]), 0, "hold_added");
    let change = change.everybody_comes().strategy(&["stall_timeout: 10m"]);
    let mut agents = change.start_all(case, [m1, m4]);
    let waits = |keys: &std::collections::BTreeMap<String, Value>| {
        let agents = keys.iter().filter(|(key, _)| key.starts_with("agents/"));
        let mut waits = agents.filter_map(|(_, agent)| agent["waits_for"].as_str().map(str::to_owned));
        waits.find(|waits| waits.contains("the hold backup of ops"))
    };
    rollout.until_keys("the removal to wait for the hold", waits).await;
    let listed = case.listed(&case.client(1)).await;
    assert!(listed.contains(&("m4".into(), true)) && listed.contains(&("m1".into(), true)), "{listed:?}");
    let held = |record: &Value| record["holds"].as_array().is_some_and(|holds| !holds.is_empty());
    let of_m4 = record(case, |record| record["phase"] == "running" && record["seats"] == json!(["m4"])).await;
    assert!(of_m4.is_some_and(|record| held(&record)), "no voter is without a hold (Q-05)");

    must_be(said(&["hold", "remove"], &playbook, &["m1", "backup", "--owner", "dev"]), 3, "hold_of_another");
    must_be(said(&["hold", "remove"], &playbook, &["m1", "backup", owner[0], owner[1]]), 0, "hold_removed");
    let drained = said(&["drain"], &playbook, &["m1", "--wait", "5m"]);
    must_be(drained, 0, "may_leave");
    let listed = case.listed(&case.client(1)).await;
    assert!(!listed.iter().any(|(name, _)| name == "m1"), "{listed:?}");
    all_must_be(&all_end(agents.drain(..)).await, 0, "done");
    let left = record(case, |record| record["phase"] == "left").await.expect("it has left");
    assert!(!held(&left) && left["mark"].is_null(), "{left}");
    rollout.end(1).await;
}

async fn a_newcomer_on_a_host_that_is_to_go_is_taken_back(system: System) {
    let Some(case) = with_three(system).await else { return };
    let newcomers = case.newcomers(1);
    let rollout = case.begin().await;
    let case = &*rollout;
    let change = case.replace("m1", "m4");
    adopt_all(case, &change);
    let agent = change.start(case, &newcomers.members[0]);
    let playbook = change.write(case, &[case.member(1)]);
    let added = wait::until("it to be added", LIMIT, || async {
        let is_told = agent.events().is_ok_and(|events| events.iter().any(|event| event.event == "newcomer_added"));
        is_told.then_some(()).ok_or_else(|| agent.log())
    });
    added.await.expect("it was added");
    // Its agent stands still, so that the mark comes before the promotion.
    let process = agent.process().expect("it runs");
    process.signal(Signal::STOP).expect("stopped");
    let listed = case.listed(&case.client(1)).await;
    assert_eq!(listed.iter().filter(|(_, votes)| *votes).count(), 3, "it is too late: {listed:?}");
    let hosts = must_be(said(&["hold", "list"], &playbook, &[]), 0, "shown");
    let hosts = hosts["protection"]["hosts"].as_array().expect("hosts");
    let joining = hosts.iter().find(|host| host["phase"] == "joining").and_then(|host| host["id"].as_str());
    let joining = joining.expect("its host is known before it votes (L-03)");
    must_be(said(&["drain"], &playbook, &[joining, "--wait", "1s"]), 3, "host_held");
    process.signal(Signal::CONT).expect("continued");
    agent.ends().await.must_be(1, "not_joined");
    assert_eq!(case.listed(&case.client(1)).await.len(), 3);
    must_be(said(&["drain"], &playbook, &[joining, "--wait", "5m"]), 0, "may_leave");
    assert!(record(case, |record| record["phase"] == "left").await.is_some());
    rollout.end(0).await;
}

async fn a_drain_does_not_take_a_record_that_is_gone_for_a_member_that_is(system: System) {
    let Some(case) = with_three(system).await else { return };
    let change = case.scale(&["m1", "m2", "m3"]);
    adopt_all(&case, &change);
    let playbook = change.write(&case, &[case.member(0)]);
    let marked = |record: &Value| record["mark"].is_object();
    let drain = async || {
        let mut command = Command::new(agent::executable().expect("an agent"));
        command.arg("drain").arg(&playbook).args(["m1", "--output", "json", "--wait", "5m"]).stdout(Stdio::piped());
        let child = command.spawn().expect("started");
        let is_marked = wait::until("the host to be marked", LIMIT, || async {
            record(&case, marked).await.map(drop).ok_or_else(|| "no mark".to_owned())
        });
        is_marked.await.expect("marked");
        child
    };
    let end = |child: Child| {
        let output = child.wait_with_output().expect("ended");
        (output.status.code().expect("a code"), serde_json::from_slice(&output.stdout).expect("an object"))
    };
    // Somebody changes their mind.
    let waiting = drain().await;
    must_be(said(&["drain"], &playbook, &["m1", "--undo"]), 0, "unmarked");
    must_be(end(waiting), 3, "mark_lifted");
    // Somebody has the record taken away.
    let waiting = drain().await;
    must_be(said(&["adopt"], &playbook, &["--forget"]), 0, "adopted");
    let object = must_be(end(waiting), 2, "no_such_host");
    assert!(object["message"].as_str().is_some_and(|message| message.contains("is a member yet")), "{object}");
    must_be(said(&["adopt"], &playbook, &[]), 0, "adopted");
    // Its own hold is lifted by hand, and put back by whoever thinks again.
    must_be(said(&["drain"], &playbook, &["m1", "--wait", "1s"]), 3, "host_held");
    must_be(said(&["hold", "remove"], &playbook, &["m1", "quorum", "--owner", "baton"]), 0, "hold_removed");
    must_be(said(&["drain"], &playbook, &["m1", "--check"]), 0, "may_leave");
    must_be(said(&["drain"], &playbook, &["m1", "--undo"]), 0, "unmarked");
    must_be(said(&["drain"], &playbook, &["m1", "--check"]), 3, "host_held");
    // A host that lost its state directory.
    let text = fs::read_to_string(&playbook).expect("a playbook");
    let line = text.lines().find(|line| line.starts_with("state_dir:")).expect("a state directory");
    let lost = format!("{}-lost\"", line.trim_end_matches('"'));
    fs::write(&playbook, text.replace(line, &lost)).expect("written");
    must_be(said(&["adopt"], &playbook, &[]), 3, "host_of_another");
    must_be(said(&["adopt"], &playbook, &["--take-over"]), 0, "adopted");
    must_be(said(&["drain"], &playbook, &["m1", "--check"]), 3, "host_held");
}

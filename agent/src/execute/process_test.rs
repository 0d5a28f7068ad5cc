use std::{
    fs,
    process::{Child, Command, Stdio},
};

use proto::MemberId;

use super::*;
use crate::{
    host::{files::state_dir::StateDir, process::process_id::ProcessId},
    playbook::{self, Playbook},
};

/// A member whose `status` says `says`, and how long its stop may take.
fn node(folder: &std::path::Path, says: &str, kill: bool) -> (OwnNode, StateDir) {
    let head =
        "apiVersion: baton/v1\nkind: Restart\nrestart: { id: x }\ncluster: { name: c, endpoints: [\"http://h:1\"] }\n";
    let runtime =
        format!("{{ kind: command, start: [\"true\"], stop: [\"true\"], status: [/bin/sh, -c, \"{says}\"] }}");
    let node = format!(
        "state_dir: state\nnodes: [{{ name: m1, stop: {{ timeout: 300ms, kill: {kill} }}, runtime: {runtime} }}]\n"
    );
    let path = folder.join("restart.yaml");
    fs::write(&path, format!("{head}{node}")).unwrap();
    let playbook = Playbook::load(&path).unwrap();
    let state = StateDir::open(&playbook.state_dir).unwrap();
    (OwnNode::open(&playbook.nodes[0], MemberId(1), &state, None).unwrap(), state)
}

struct Process(Child);

impl Process {
    fn new() -> Self {
        Self(Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().unwrap())
    }

    fn identity(&self) -> ProcessId {
        ProcessId::of(self.0.id()).unwrap().unwrap()
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Else an agent that comes after one that was killed takes it for healthy, and the next member goes down beside it.
#[tokio::test]
async fn a_process_that_was_told_to_stop_is_neither_running_nor_stopped_until_it_has_ended() {
    // To kill it takes a look at the cluster first.
    for kill in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (mut node, state) = node(folder.path(), "echo 1", kill);
        node.look_up().await.unwrap();
        let mut process = Process::new();
        let file = StopRequestFile::of(&state.nodes(), "m1");
        fs::create_dir_all(state.nodes()).unwrap();
        file.write(&StopRequest::now(Some(process.identity()), true).unwrap()).unwrap();
        for _ in 0..2 {
            let why = node.status().await.unwrap_err();
            assert!(why.to_string().ends_with(&format!("kill -KILL {}", process.0.id())), "{why}");
            assert!(
                node.start().await.is_err() && node.start_stopped(Listens::Perhaps).await.is_err(),
                "nothing beside it"
            );
        }
        assert!(process.is_alive());
        let foretold = node.still_ending().await.unwrap();
        assert!(foretold.starts_with(&format!("m1 ({}) was told to stop", process.identity())), "{foretold}");
        drop(process);
        assert_eq!(node.still_ending().await, None);
        assert!(file.read().is_some(), "a plan writes nothing");
        node.status().await.unwrap();
        assert_eq!(file.read(), None);
    }
}

/// Whoever is named by a supervisor alone may be anybody, and is not killed.
#[tokio::test]
async fn where_nothing_else_shows_the_process_the_word_of_its_supervisor_counts() {
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let script = format!("cat {}; test -s {0} || exit 3", said.display());
    let (mut node, state) = node(folder.path(), &script, true);
    node.look_up().await.unwrap();
    let (mut named, other) = (Process::new(), Process::new());
    let file = StopRequestFile::of(&state.nodes(), "m1");
    fs::create_dir_all(state.nodes()).unwrap();
    for (about, says, then, is_running) in [
        (None, "up".to_owned(), String::new(), false),
        (Some(named.identity()), named.0.id().to_string(), String::new(), false),
        (Some(named.identity()), named.0.id().to_string(), other.0.id().to_string(), true),
    ] {
        file.write(&StopRequest::now(about, false).unwrap()).unwrap();
        fs::write(&said, says).unwrap();
        let why = node.status().await.unwrap_err();
        assert!(why.to_string().ends_with(&format!("rm {}", file.path().display())), "{why}");
        fs::write(&said, then).unwrap();
        assert_eq!(node.status().await.unwrap().is_running(), is_running);
        assert_eq!(file.read(), None);
    }
    assert!(named.is_alive());
}

/// It does not say that it runs.
#[tokio::test]
async fn a_status_that_fails_keeps_down_no_member_that_was_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("started");
    let (mut node, state) = node(folder.path(), &format!("test -e {} || exit 1", mark.display()), false);
    let playbook::Runtime::Command(command) = &mut node.node.runtime else { unreachable!() };
    command.start = ["touch".to_owned(), mark.display().to_string()].into();
    fs::create_dir_all(state.nodes()).unwrap();
    StopRequestFile::of(&state.nodes(), "m1").write(&StopRequest::now(None, false).unwrap()).unwrap();
    node.look_up().await.unwrap();
    assert!(node.status().await.is_err());
    node.start_stopped(Listens::Perhaps).await.unwrap();
    assert!(mark.exists());
    assert!(node.status().await.unwrap().is_running(), "what runs now was started since");
}

/// A member is down for good where its `status` says in any case that it runs.
#[tokio::test]
async fn a_status_that_always_says_that_it_runs_keeps_down_no_member_that_nobody_listens_for() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("started");
    let (mut node, _state) = node(folder.path(), "exit 0", true);
    let playbook::Runtime::Command(command) = &mut node.node.runtime else { unreachable!() };
    command.start = ["touch".to_owned(), mark.display().to_string()].into();
    node.look_up().await.unwrap();
    assert!(node.start_stopped(Listens::Nowhere).await.is_ok() && !mark.exists(), "nobody has told it to stop");
    assert!(node.stop(Found::Unknown).await.is_err());
    assert!(node.start_stopped(Listens::Perhaps).await.is_err() && !mark.exists(), "it may still run");
    let started = node.start_stopped(Listens::Nowhere).await.unwrap();
    assert!(started.is_new && mark.exists());
    assert!(started.warnings.concat().contains("nobody listens at its address"), "{:?}", started.warnings);
    assert!(node.status().await.unwrap().is_running(), "what runs now was started since");
}

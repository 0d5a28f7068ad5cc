//! Runtime `command`: a stop command that goes on when its agent is killed is not taken for over.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use agent::host::{
    process::process_id::ProcessId,
    runtime::{
        Found, Status,
        command::{CommandError, CommandRuntime},
    },
};
use tempfile::TempDir;

use crate::process::{LIMIT, process};

/// A node that sleeps, whose pid is in a file; it is killed with the value.
struct Host {
    folder: TempDir,
    runtime: CommandRuntime,
}

impl Host {
    fn new(stop: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime = runtime(folder.path(), stop, LIMIT);
        Self { folder, runtime }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn identity(&self) -> ProcessId {
        process(self.runtime.start().await.unwrap().status).identity
    }

    fn kill(&self, name: &str) {
        let pid = fs::read_to_string(self.at(name)).ok().and_then(|pid| pid.trim().parse().ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A stop that still waits for its word ends with its folder.
        self.kill("pid");
        self.kill("left");
    }
}

fn runtime(folder: &Path, stop: &str, patience: Duration) -> CommandRuntime {
    let sh = |script: &str| ["/bin/sh", "-c", &format!("cd {}; {script}", folder.display())].map(String::from).to_vec();
    CommandRuntime {
        name: "orders-1".into(),
        start: sh("sleep 600 & echo $! > pid"),
        stop: sh(stop),
        status: sh("p=$(cat pid) && grep -q '^State:.[^Z]' /proc/$p/status && echo $p || exit 3"),
        patience,
        nodes: folder.join("nodes"),
        last_named: Default::default(),
    }
}

/// Ends the node when it is told to.
const DRAIN: &str = "touch begun; while [ ! -e go ] && [ -e begun ]; do sleep 0.02; done; kill $(cat pid)";

/// An agent that stops the node of this folder, for the test below to kill.
#[test]
#[ignore = "run by another test, as an agent to kill"]
fn as_a_stopping_agent() {
    let Some(folder) = env::var_os("BATON_TEST_STOP") else { return };
    let runtime = runtime(Path::new(&folder), DRAIN, LIMIT);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(runtime.stop(LIMIT, false, Found::Unknown)).unwrap();
}

fn wait_for(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < LIMIT, "{}", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_stop_that_outlives_its_agent_is_waited_for() {
    let host = Host::new(DRAIN);
    let first = host.identity().await;
    let mut agent = Command::new(env::current_exe().unwrap())
        .args(["--exact", "command_crash::as_a_stopping_agent", "--ignored"])
        .env("BATON_TEST_STOP", host.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(&host.at("begun"));
    agent.kill().unwrap();
    agent.wait().unwrap();

    let hasty = CommandRuntime { patience: Duration::from_millis(200), ..host.runtime.clone() };
    let file = host.at("nodes/orders-1.stop");
    for error in [
        hasty.status().await.unwrap_err(),
        hasty.start().await.unwrap_err(),
        hasty.stop(LIMIT, true, Found::Unknown).await.unwrap_err(),
    ] {
        assert!(matches!(&error, CommandError::StopUnderWay { lock, .. } if *lock == file), "{error}");
        let told = error.to_string();
        assert!(told.contains("the stop command of an earlier agent still runs after 200ms: pid "), "{told}");
        assert!(told.contains("(user ") && told.ends_with(&format!("type: rm {}", file.display())), "{told}");
    }
    assert!(hasty.peek().await.unwrap().is_running(), "who only looks is told what is");

    let waiting = tokio::spawn({
        let runtime = host.runtime.clone();
        async move { runtime.start().await }
    });
    fs::write(host.at("go"), "").unwrap();
    let second = process(waiting.await.unwrap().unwrap().status).identity;
    assert!(!first.is_alive().unwrap() && second.is_alive().unwrap() && first != second);
    assert!(matches!(hasty.status().await.unwrap(), Status::Running { .. }));
}

#[tokio::test]
async fn what_a_stop_leaves_running_is_not_the_stop() {
    let host = Host::new("exec 3<&0; sleep 600 <&3 & echo $! > left; kill $(cat pid)");
    let first = host.identity().await;
    host.runtime.stop(LIMIT, false, Found::Unknown).await.unwrap();
    let hasty = CommandRuntime { patience: Duration::ZERO, ..host.runtime.clone() };
    assert_eq!(hasty.status().await.unwrap(), Status::Stopped);
    assert_ne!(process(hasty.start().await.unwrap().status).identity, first);
}

/// As the member's user may do, whose processes can take over what the command has open.
#[tokio::test]
async fn a_lock_that_is_taken_again_after_the_stop_keeps_no_node_down() {
    let host = Host::new(&format!("exec 3<&0; python3 -c '{THIEF}' <&3 & echo $! > left; kill $(cat pid)"));
    let first = host.identity().await;
    host.runtime.stop(LIMIT, false, Found::Unknown).await.unwrap();
    wait_for(&host.at("locked"));
    let hasty = CommandRuntime { patience: Duration::ZERO, ..host.runtime.clone() };
    assert_ne!(process(hasty.start().await.unwrap().status).identity, first);
}

const THIEF: &str = r#"import fcntl, time; fcntl.flock(0, 2); open("locked", "w"); time.sleep(600)"#;

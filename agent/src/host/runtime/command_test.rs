use std::fs;

use tempfile::TempDir;

use super::*;

fn sh(script: &str) -> Vec<String> {
    ["/bin/sh", "-c", script].map(String::from).to_vec()
}

/// A supervisor of a few lines: a real process, its pid in a file. It is killed with the test.
struct Supervised {
    folder: TempDir,
    runtime: CommandRuntime,
}

impl Supervised {
    fn new(node: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid").display().to_string();
        let status = format!(
            "p=$(cat {pid} 2>/dev/null) && grep -q '^State:.[^Z]' /proc/$p/status 2>/dev/null && echo $p || exit 3"
        );
        let runtime = CommandRuntime {
            name: "orders-1".into(),
            start: sh(&format!("{node} & echo $! > {pid}; echo started")),
            stop: sh(&format!("kill $(cat {pid})")),
            status: sh(&status),
            patience: Duration::from_millis(300),
            nodes: folder.path().join("nodes"),
        };
        Self { folder, runtime }
    }

    async fn identity(&self) -> Option<ProcessId> {
        Some(self.runtime.status().await.unwrap().process()?.identity)
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let pid = fs::read_to_string(self.folder.path().join("pid")).ok().and_then(|pid| pid.trim().parse().ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

#[tokio::test]
async fn a_node_is_started_once_and_stopped_for_good() {
    let node = Supervised::new("exec sleep 600");
    assert_eq!(node.runtime.status().await.unwrap(), Status::Stopped);
    node.runtime.start().await.unwrap();
    let first = node.identity().await.unwrap();
    node.runtime.start().await.unwrap();
    assert_eq!(node.identity().await, Some(first), "not started twice");
    node.runtime.stop(Duration::from_secs(30), false).await.unwrap();
    assert!(!first.is_alive().unwrap());
    node.runtime.stop(Duration::from_secs(30), false).await.unwrap();
}

#[tokio::test]
async fn a_node_that_ignores_its_stop_runs_on_or_is_killed_as_told() {
    let node = Supervised::new(
        "python3 -c 'import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)'",
    );
    node.runtime.start().await.unwrap();
    // It ignores the signal only from its first print on.
    let output = node_file(&node.runtime.nodes, "orders-1", "start.log");
    while !fs::read_to_string(&output).unwrap().contains('1') {
        sleep(Duration::from_millis(10)).await;
    }
    let error = node.runtime.stop(Duration::from_millis(300), false).await.unwrap_err();
    assert!(matches!(error, CommandError::StillRunning { .. }), "{error}");
    assert!(node.identity().await.is_some());
    node.runtime.stop(Duration::from_millis(300), true).await.unwrap();
    assert_eq!(node.runtime.status().await.unwrap(), Status::Stopped);
}

#[tokio::test]
async fn a_status_without_a_pid_is_running_all_the_same() {
    let mut node = Supervised::new("exec sleep 600");
    for (script, expected) in [
        ("echo is up", Some(Status::Running { process: None })),
        ("true", Some(Status::Running { process: None })),
        ("echo 4194999", Some(Status::Running { process: None })), // no such process
        ("exit 3", Some(Status::Stopped)),
        ("exit 1", None),
        ("kill -9 $$", None),
    ] {
        node.runtime.status = sh(script);
        assert_eq!(node.runtime.status().await.ok(), expected, "{script}");
    }
    node.runtime.status = sh("echo cannot connect >&2; exit 4");
    let error = node.runtime.status().await.unwrap_err().to_string();
    assert!(
        error.starts_with("node orders-1: status ended with exit 4") && error.ends_with(": cannot connect"),
        "{error}"
    );
}

#[tokio::test]
async fn a_start_that_fails_says_why() {
    let mut node = Supervised::new("exec sleep 600");
    node.runtime.start = sh("echo no such unit; exit 5");
    let error = node.runtime.start().await.unwrap_err().to_string();
    assert_eq!(error, "node orders-1: start ended with exit 5, expected exit 0: no such unit");
}

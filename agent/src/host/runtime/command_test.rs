use std::{fs, os::unix::fs::PermissionsExt};

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
            last_named: LastNamed::default(),
        };
        Self { folder, runtime }
    }

    async fn identity(&self) -> Option<ProcessId> {
        Some(self.runtime.status().await.unwrap().process()?.identity)
    }

    /// The process that it is, and that nothing but `status` names.
    async fn judged(&self) -> Judged {
        let named = self.identity().await.unwrap();
        Judged { named, node: named }
    }

    /// A node that ignores SIGTERM, and does so by now.
    async fn stubborn(before: &str, after: &str) -> Self {
        let program = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)";
        let node = Self::new(&format!("{before}python3 -c '{program}'{after}"));
        node.runtime.start().await.unwrap();
        let output = node_file(&node.runtime.nodes, "orders-1", "start.log");
        while !fs::read_to_string(&output).unwrap().contains('1') {
            sleep(Duration::from_millis(10)).await;
        }
        node
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
    assert!(node.runtime.start().await.unwrap().is_new);
    let first = node.identity().await.unwrap();
    assert!(!node.runtime.start().await.unwrap().is_new);
    assert!(!node.runtime.start_stopped(Listens::Perhaps).await.unwrap().is_new);
    assert_eq!(node.identity().await, Some(first), "not started twice");
    node.runtime.stop(Duration::from_secs(30), false, Found::Shown(node.judged().await)).await.unwrap();
    assert!(!first.is_alive().unwrap());
    node.runtime.stop(Duration::from_secs(30), false, Found::Stopped).await.unwrap();
}

#[tokio::test]
async fn a_node_that_ignores_its_stop_runs_on_or_is_killed_as_told() {
    let node = Supervised::stubborn("", "").await;
    let judged = Found::Shown(node.judged().await);
    let error = node.runtime.stop(Duration::from_millis(300), false, judged).await.unwrap_err();
    assert!(matches!(error, CommandError::StillRunning { .. }), "{error}");
    assert!(node.identity().await.is_some());
    node.runtime.stop(Duration::from_millis(300), true, judged).await.unwrap();
    assert_eq!(node.runtime.status().await.unwrap(), Status::Stopped);
}

/// A process of somebody else's, which ends with the test.
struct Victim(std::process::Child);

impl Victim {
    fn new() -> Self {
        Self(std::process::Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn another_process_than_the_judged_one_is_not_stopped() {
    let (mut node, mut victim) = (Supervised::new("exec sleep 600"), Victim::new());
    node.runtime.start().await.unwrap();
    let judged = node.judged().await;
    let stopped = node.folder.path().join("stopped");
    node.runtime.stop = sh(&format!("touch {}", stopped.display()));
    node.runtime.status = sh(&format!("echo {}", victim.0.id()));
    for (found, before) in
        [(Found::Shown(judged), format!("it was {}", judged.named)), (Found::Stopped, "none ran".to_owned())]
    {
        let error = node.runtime.stop(Duration::from_millis(100), true, found).await.unwrap_err();
        assert!(matches!(error, CommandError::Another { .. }), "{error}");
        let told = error.to_string();
        assert!(told.contains(&before) && told.contains(&format!("pid {} (", victim.0.id())), "{told}");
    }
    assert!(victim.is_alive() && judged.node.is_alive().unwrap() && !stopped.exists());
}

#[tokio::test]
async fn only_the_judged_process_is_killed_whatever_status_names_after_it() {
    let (mut node, mut victim) = (Supervised::stubborn("", "").await, Victim::new());
    let judged = node.judged().await;
    let pid = node.folder.path().join("pid").display().to_string();
    node.runtime.stop = sh(&format!("echo {} > {pid}.new; mv {pid}.new {pid}", victim.0.id()));
    let error = node.runtime.stop(Duration::from_millis(300), true, Found::Shown(judged)).await.unwrap_err();
    assert!(matches!(error, CommandError::StillRunning { .. }), "{error}");
    assert!(victim.is_alive() && !judged.node.is_alive().unwrap());
}

#[tokio::test]
async fn a_status_that_says_stopped_too_early_is_not_believed() {
    let mut node = Supervised::stubborn("", "").await;
    let judged = node.judged().await;
    node.runtime.stop = sh(&format!("rm {}", node.folder.path().join("pid").display()));
    node.runtime.stop(Duration::from_millis(300), true, Found::Shown(judged)).await.unwrap();
    assert!(!judged.node.is_alive().unwrap());
}

#[tokio::test]
async fn what_was_not_judged_is_not_killed() {
    let node = Supervised::stubborn("", "").await;
    let error = node.runtime.stop(Duration::from_millis(300), true, Found::Unknown).await.unwrap_err();
    let identity = node.identity().await.expect("it runs on");
    let told = error.to_string();
    assert!(told.contains("not killed") && told.contains(&format!("named {} (", identity)), "{told}");
}

/// As `status` of a supervisor does that prints its own pid: what is killed is the node, and its supervisor ends by itself.
#[tokio::test]
async fn below_a_supervisor_the_node_is_killed() {
    let waits = "child=$!; while ! wait $child && kill -0 $child; do :; done";
    let node = Supervised::stubborn("{ trap : TERM; ", &format!(" & {waits}; }}")).await;
    let named = node.identity().await.unwrap();
    let family = crate::host::process::process_id::family(named.pid).unwrap();
    let child = ProcessId::of(*family.last().unwrap()).unwrap().unwrap();
    assert_ne!(named, child);
    node.runtime.stop(Duration::from_millis(300), true, Found::Shown(Judged { named, node: child })).await.unwrap();
    assert!(!named.is_alive().unwrap() && !child.is_alive().unwrap());
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

/// Members are looked at before anything is checked, and started long after it.
#[tokio::test]
async fn what_others_may_change_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    let mark = folder.path().join("mark");
    let [safe, unsafe_one] = [folder.path().join("ctl"), open.join("ctl")];
    for (script, code) in [(&safe, 3), (&unsafe_one, 0)] {
        fs::write(script, format!("#!/bin/sh\necho $1 >> {}\nexit {code}\n", mark.display())).unwrap();
        fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let argv = |script: &Path, verb: &str| vec![script.display().to_string(), verb.to_owned()];
    let runtime = |start: &Path, status: &Path| CommandRuntime {
        name: "orders-1".into(),
        start: argv(start, "start"),
        stop: argv(&unsafe_one, "stop"),
        status: argv(status, "status"),
        patience: Duration::from_millis(300),
        nodes: folder.path().join("nodes"),
        last_named: LastNamed::default(),
    };
    let refused = |result: Result<(), CommandError>| result.unwrap_err().to_string();
    let looks = runtime(&safe, &unsafe_one);
    assert_eq!(refused(looks.peek().await.map(drop)), "node orders-1: status is not safe to run");
    assert_eq!(
        refused(looks.stop(Duration::ZERO, true, Found::Unknown).await),
        "node orders-1: status is not safe to run"
    );
    assert!(!mark.exists(), "run all the same: {:?}", fs::read_to_string(&mark));
    let said = refused(runtime(&unsafe_one, &safe).start().await.map(drop));
    assert!(said.ends_with(&format!("type: {} start", unsafe_one.display())), "{said}");
    assert_eq!(fs::read_to_string(&mark).unwrap(), "status\n", "of the safe one alone");
}

/// Since preflight hours may have passed: what cannot be started again is not stopped, and what cannot be told to stop is not
/// killed for that.
#[tokio::test]
async fn a_node_that_may_not_be_stopped_or_started_is_left_alone() {
    for what in ["start", "stop"] {
        let mut node = Supervised::new("exec sleep 600");
        node.runtime.start().await.unwrap();
        let open = node.folder.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let script = open.join("ctl");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        match what {
            "start" => node.runtime.start = vec![script.display().to_string()],
            _ => node.runtime.stop = vec![script.display().to_string()],
        }
        let judged = node.judged().await;
        let error = node.runtime.stop(Duration::from_millis(100), true, Found::Shown(judged)).await.unwrap_err();
        assert!(error.to_string().starts_with(&format!("node orders-1: {what} is not safe to run")), "{error}");
        assert!(!error.to_string().contains("may be down"), "{error}");
        assert!(judged.node.is_alive().unwrap(), "{what}");
    }
}

/// As an init script's `status` of one that died, or of one that was killed.
#[tokio::test]
async fn a_status_that_fails_is_believed_of_a_process_that_is_gone_and_keeps_no_stopped_node_down() {
    let mut node = Supervised::stubborn("", "").await;
    let pid = node.folder.path().join("pid").display().to_string();
    let alive = format!("p=$(cat {pid}); grep -q '^State:.[^Z]' /proc/$p/status 2>/dev/null && echo $p || exit 1");
    node.runtime.status = sh(&alive);
    let judged = node.judged().await;
    node.runtime.stop(Duration::from_millis(300), true, Found::Shown(judged)).await.unwrap();
    assert_eq!(node.runtime.status().await.unwrap(), Status::Stopped);
    // An agent that comes later has seen nothing of it.
    node.runtime.last_named = LastNamed::default();
    let error = node.runtime.start().await.unwrap_err();
    assert!(matches!(error, CommandError::Failed { .. }), "{error}");
    assert!(node.runtime.start_stopped(Listens::Perhaps).await.unwrap().status.is_running());
    // While it runs a failure of `status` is one.
    node.runtime.status = sh("exit 1");
    assert!(node.runtime.status().await.is_err());
    node.runtime.status = sh(&alive);
}

#[tokio::test]
async fn a_stopped_node_is_started_though_nothing_can_be_kept_of_what_its_start_prints() {
    let node = Supervised::new("exec sleep 600");
    fs::create_dir_all(node_file(&node.runtime.nodes, "orders-1", "start.log")).unwrap();
    fs::set_permissions(&node.runtime.nodes, fs::Permissions::from_mode(0o700)).unwrap();
    node.runtime.start().await.unwrap_err();
    let started = node.runtime.start_stopped(Listens::Perhaps).await.unwrap();
    assert!(started.status.is_running() && started.warnings[0].contains("goes nowhere"), "{:?}", started.warnings);
}

#[tokio::test]
async fn a_stop_that_could_not_be_run_has_told_nobody() {
    let mut node = Supervised::new("exec sleep 600");
    node.runtime.start().await.unwrap();
    let found = Found::Shown(node.judged().await);
    node.runtime.stop = vec!["/no/such/program".to_owned()];
    node.runtime.stop(Duration::from_millis(100), false, found).await.unwrap_err();
    assert_eq!(StopRequestFile::of(&node.runtime.nodes, "orders-1").read(), None);
}

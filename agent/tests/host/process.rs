//! Runtime `process`: sessions, descriptors, users, stopping.

use std::{
    collections::BTreeMap,
    fs::{self, File, Permissions},
    io::ErrorKind,
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use agent::host::{
    process::process_id::ProcessId,
    runtime::{
        Process, Runtime, Status,
        fitness::Needs,
        launch::NodeCommand,
        process::{ProcessError, ProcessRuntime},
    },
};
use rustix::process::Signal;
use tempfile::TempDir;

pub const LIMIT: Duration = Duration::from_secs(60);
pub const AGENT: &str = env!("CARGO_BIN_EXE_agent");

/// A host's folder with a node that sleeps. All processes of its executables are killed with it.
pub struct Host {
    folder: TempDir,
    pub command: NodeCommand,
    pub launcher: Vec<String>,
}

impl Host {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("releases/1.0.0-aaa")).unwrap();
        fs::copy("/bin/sleep", at("releases/1.0.0-aaa/node")).unwrap();
        symlink("releases/1.0.0-aaa/node", at("current")).unwrap();
        let command = NodeCommand {
            name: "orders-1".into(),
            argv: vec![at("current").display().to_string(), "600".into()],
            also_as: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            user: None,
            log: at("node.log"),
            binary: Some(at("current")),
        };
        Self { folder, command, launcher: vec![AGENT.into(), "__launch".into()] }
    }

    /// A node that runs a script instead of sleeping.
    pub fn python(script: &str) -> Self {
        let mut host = Self::new();
        let python = fs::canonicalize(which("python3")).unwrap();
        host.command.argv = vec![python.display().to_string(), "-c".into(), script.into()];
        host
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn nodes(&self) -> PathBuf {
        self.path().join("nodes")
    }

    pub fn runtime(&self) -> ProcessRuntime {
        ProcessRuntime::new(self.command.clone(), self.nodes()).with_launcher(self.launcher.clone())
    }

    pub async fn start(&self) -> Process {
        process(self.runtime().start().await.unwrap().status)
    }

    pub async fn start_error(&self) -> String {
        let error = self.runtime().start().await.unwrap_err();
        assert!(matches!(error, ProcessError::NotStarted { .. }), "{error}");
        assert_eq!(self.running(), Vec::<u32>::new(), "{error}");
        error.to_string()
    }

    /// The processes that execute something in this folder.
    pub fn running(&self) -> Vec<u32> {
        let folder = self.path().canonicalize().unwrap();
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.starts_with(&folder))).collect()
    }

    pub fn by_hand(&self, arguments: &[&str]) -> Child {
        self.by_hand_as(nix::unistd::Uid::effective().as_raw(), arguments)
    }

    /// As another user.
    pub fn by_hand_as(&self, uid: u32, arguments: &[&str]) -> Child {
        let begun = Instant::now();
        loop {
            let mut command = Command::new(&self.command.argv[0]);
            command.uid(uid);
            match command.args(arguments).stdin(Stdio::null()).spawn() {
                // Another test was starting a process while the copy was written.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && begun.elapsed() < LIMIT => {}
                child => return child.unwrap(),
            }
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let json = fs::read(self.nodes().join("orders-1.json")).unwrap_or_default();
        let on_file = serde_json::from_slice::<serde_json::Value>(&json).ok();
        let on_file = on_file.and_then(|file| serde_json::from_value(file["identity"].clone()).ok());
        let others = self.running().into_iter().filter_map(|pid| ProcessId::of(pid).ok().flatten());
        for identity in others.chain(on_file) {
            if let Ok(Some(handle)) = identity.open() {
                let _ = handle.signal(Signal::KILL);
            }
        }
    }
}

pub fn process(status: Status) -> Process {
    match status {
        Status::Running { process: Some(process) } => process,
        other => panic!("{other:?}"),
    }
}

fn which(program: &str) -> PathBuf {
    let path = std::env::var("PATH").unwrap();
    path.split(':').map(|folder| Path::new(folder).join(program)).find(|path| path.is_file() && is_elf(path)).unwrap()
}

fn is_elf(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"))
}

/// A field of `/proc/<pid>/status`.
fn status_field(pid: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LIMIT, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_node_has_a_session_of_its_own_and_nothing_of_the_agents() {
    let mut host = Host::new();
    host.command.env = [("GREETING".to_owned(), "hello".to_owned())].into();
    host.command.cwd = Some(host.path().join("releases"));
    // A descriptor that is inherited unless somebody sees to it.
    let stray = File::open("/etc/passwd").unwrap();
    nix::fcntl::fcntl(&stray, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();

    let Process { identity, exe } = host.start().await;
    let proc = PathBuf::from(format!("/proc/{}", identity.pid));
    assert_eq!(exe.unwrap(), host.path().canonicalize().unwrap().join("releases/1.0.0-aaa/node"));
    let stat = fs::read_to_string(proc.join("stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    let pid = identity.pid.to_string();
    assert_eq!((fields[2], fields[3]), (pid.as_str(), pid.as_str()), "leads its group and session: {stat}");
    // While the agent lives it hears as the parent how the node ended (`host/process/parent.rs`); then init is the parent.
    assert_eq!(fields[1], std::process::id().to_string(), "{stat}");
    // It opens its own libraries for a moment; what it inherited would stay.
    let log = host.command.log.canonicalize().unwrap();
    until("nothing else is open", || {
        let open =
            fs::read_dir(proc.join("fd")).unwrap().map(|fd| fs::read_link(fd.unwrap().path()).unwrap_or_default());
        open.collect::<Vec<_>>() == ["/dev/null".into(), log.clone(), log.clone()]
    })
    .await;
    assert_eq!(
        fs::read_to_string(proc.join("environ")).unwrap(),
        "GREETING=hello\0PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\0",
    );
    assert_eq!(fs::read_link(proc.join("cwd")).unwrap(), host.path().canonicalize().unwrap().join("releases"));
    assert_eq!(status_field(identity.pid, "Umask"), "0022");
}

#[tokio::test]
async fn ignored_and_blocked_signals_are_not_handed_on() {
    let mut host = Host::new();
    let script = r#"trap '' TERM INT HUP QUIT CHLD PIPE; exec "$0" __launch"#;
    host.launcher = ["/bin/sh", "-c", script, AGENT].map(String::from).to_vec();
    let pid = host.start().await.identity.pid;
    for field in ["SigIgn", "SigBlk"] {
        // The first 31; the two after them are the C library's own.
        let signals = u64::from_str_radix(&status_field(pid, field), 16).unwrap() & 0x7fff_ffff;
        assert_eq!(signals, 0, "{field}");
    }
    host.runtime().stop(LIMIT, false).await.unwrap();
}

#[tokio::test]
async fn a_node_is_started_once_however_many_start_it() {
    let host = Host::new();
    let starts: Vec<_> = (0..8)
        .map(|_| {
            tokio::spawn({
                let runtime = host.runtime();
                async move { runtime.start().await }
            })
        })
        .collect();
    let (mut seen, mut new) = (Vec::new(), 0);
    for start in starts {
        let started = start.await.unwrap().unwrap();
        new += usize::from(started.is_new);
        seen.push(process(started.status));
    }
    seen.dedup();
    assert_eq!((seen.len(), new, host.running()), (1, 1, vec![seen[0].identity.pid]));
    assert!(!host.runtime().start_stopped().await.unwrap().is_new);
    assert_eq!(process(host.runtime().status().await.unwrap()), seen[0]);
}

#[tokio::test]
async fn a_stopped_node_is_gone_and_starts_again_as_another_process() {
    let host = Host::new();
    let runtime = host.runtime();
    assert_eq!(runtime.status().await.unwrap(), Status::Stopped);
    runtime.stop(LIMIT, false).await.unwrap();
    let first = host.start().await;
    runtime.stop(LIMIT, false).await.unwrap();
    assert_eq!((runtime.status().await.unwrap(), host.running()), (Status::Stopped, vec![]));
    assert_ne!(host.start().await.identity, first.identity);
    runtime.stop(LIMIT, false).await.unwrap();
}

#[tokio::test]
async fn what_a_node_prints_is_appended_to_its_log() {
    let host = Host::python("import sys; print('out'); sys.stdout.flush(); print('err', file=sys.stderr)");
    fs::write(&host.command.log, "before\n").unwrap();
    host.start().await;
    until("the log is written", || fs::read_to_string(&host.command.log).unwrap() == "before\nout\nerr\n").await;
}

#[tokio::test]
async fn a_node_that_ignores_its_stop_runs_on_or_is_killed_as_told() {
    let host = Host::python(
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)",
    );
    let process = host.start().await;
    until("it ignores SIGTERM", || fs::read_to_string(&host.command.log).unwrap().contains("deaf")).await;
    let error = host.runtime().stop(Duration::from_millis(200), false).await.unwrap_err();
    assert!(matches!(error, ProcessError::StillRunning { identity, .. } if identity == process.identity), "{error}");
    assert!(process.identity.is_alive().unwrap());
    host.runtime().stop(Duration::from_millis(200), true).await.unwrap();
    assert!(!process.identity.is_alive().unwrap());
}

#[tokio::test]
async fn a_suspended_node_stops_too() {
    let host = Host::new();
    let handle = host.start().await.identity.open().unwrap().unwrap();
    handle.signal(Signal::STOP).unwrap();
    host.runtime().stop(LIMIT, false).await.unwrap();
    assert_eq!(host.running(), Vec::<u32>::new());
}

#[tokio::test]
async fn a_node_runs_as_its_user_with_nothing_of_root() {
    let mut host = Host::new();
    if !nix::unistd::Uid::effective().is_root() {
        host.command.user = Some("root".into());
        assert!(host.start_error().await.contains("only root can start it as user `root`"));
        return eprintln!("skipped: another user takes root");
    }
    host.command.user = Some("nobody".into());
    let pid = host.start().await.identity.pid;
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    assert_eq!(status_field(pid, "Uid"), vec![nobody.uid.to_string(); 4].join(" "));
    assert_eq!(status_field(pid, "Gid"), vec![nobody.gid.to_string(); 4].join(" "));
    assert_eq!(status_field(pid, "Groups"), nobody.gid.to_string());
    assert_eq!(status_field(pid, "CapEff"), "0000000000000000");
    let environment = fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
    assert!(environment.contains("USER=nobody\0") && environment.contains("HOME="), "{environment}");
    host.runtime().stop(LIMIT, false).await.unwrap();
}

/// With the user's rights, which root's eyes do not see.
#[tokio::test]
async fn what_a_nodes_user_may_not_reach_is_said_before_it_is_stopped() {
    let mut host = Host::new();
    if !nix::unistd::Uid::effective().is_root() {
        return eprintln!("skipped: another user takes root");
    }
    host.command.user = Some("nobody".into());
    let closed = host.path().join("closed");
    fs::create_dir_all(closed.join("inner")).unwrap();
    fs::copy("/bin/sleep", closed.join("node")).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o750)).unwrap();
    let check = async |command: &NodeCommand, needs: &Needs| {
        let runtime = ProcessRuntime::new(command.clone(), host.nodes()).with_launcher(host.launcher.clone());
        Runtime::Process(runtime).check(needs).await.map_err(|error| error.to_string())
    };
    let (sound, nothing) = (host.command.clone(), Needs::default());
    check(&sound, &nothing).await.unwrap();
    let cwd = NodeCommand { cwd: Some(closed.join("inner")), ..sound.clone() };
    let argv = NodeCommand { argv: vec![closed.join("node").display().to_string()], ..sound.clone() };
    let executable = Needs { executable: Some(closed.join("node")), ..Needs::default() };
    let folder = Needs { folders: vec![closed.clone()], ..Needs::default() };
    for (command, needs, what) in [
        (&cwd, &nothing, format!("enter {}/inner", closed.display())),
        (&argv, &nothing, format!("run {}/node", closed.display())),
        (&sound, &executable, format!("run {}/node", closed.display())),
        (&sound, &folder, format!("enter {}", closed.display())),
    ] {
        let error = check(command, needs).await.unwrap_err();
        let expected = format!("node orders-1: `user`: nobody cannot {what}: Permission denied");
        assert!(error.starts_with(&expected), "{error}");
        // With the agent's own rights there is nothing in the way.
        check(&NodeCommand { user: None, ..command.clone() }, needs).await.unwrap();
    }
    host.command = cwd;
    assert!(host.start_error().await.contains("Permission denied"), "as the start itself would find");
}

#[tokio::test]
async fn a_start_that_cannot_be_says_why_and_starts_nothing() {
    let mut host = Host::new();
    let good = host.command.clone();
    let absent = host.path().join("absent");
    for (change, expected) in [
        (
            Box::new(|c: &mut NodeCommand| c.argv[0] = absent.display().to_string()) as Box<dyn Fn(&mut NodeCommand)>,
            "cannot find",
        ),
        (Box::new(|c| c.argv[0] = "sleep".into()), "must be an absolute path, not `sleep`"),
        (Box::new(|c| c.argv.clear()), "must be an absolute path, not ``"),
        (Box::new(|c| c.argv[0] = "/etc/passwd".into()), "cannot run /etc/passwd: Permission denied"),
        (Box::new(|c| c.cwd = Some(absent.clone())), "No such file"),
        (Box::new(|c| c.log = absent.join("log")), "cannot open the log"),
        (Box::new(|c| c.user = Some("no such user".into())), "there is no user `no such user`"),
    ] {
        change(&mut host.command);
        let error = host.start_error().await;
        assert!(error.starts_with("cannot start node orders-1: ") && error.contains(expected), "{expected}: {error}");
        assert_eq!(host.runtime().status().await.unwrap(), Status::Stopped);
        host.command = good.clone();
    }
    host.start().await;
}

#[tokio::test]
async fn a_launcher_killed_by_the_terminal_is_not_a_started_node() {
    let mut host = Host::new();
    host.launcher = ["/bin/sh", "-c", "kill -INT $$"].map(String::from).to_vec();
    assert!(host.start_error().await.ends_with("its launcher was killed"));
    let own_group = nix::unistd::getpgrp();
    host.launcher =
        ["/bin/sh", "-c", "ps -o pgid= -p $$ > \"$0\"; exec \"$1\" __launch", "", AGENT].map(String::from).to_vec();
    host.launcher[3] = host.path().join("group").display().to_string();
    host.start().await;
    let group = fs::read_to_string(host.path().join("group")).unwrap();
    assert_ne!(group.trim(), own_group.to_string(), "an interrupt typed at the agent does not reach the launcher");
}

/// The second process of the launcher, given its order by hand.
pub fn session(host: &Host, order: &serde_json::Value, tracer: &[String]) -> Child {
    let argv = [tracer, &[AGENT.into(), "__launch".into(), "session".into()]].concat();
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    fs::create_dir_all(host.nodes()).unwrap();
    // One that is killed at its first calls does not read it.
    let _ = serde_json::to_writer(child.stdin.take().unwrap(), order);
    child
}

pub fn order(host: &Host, agent: ProcessId, deadline_ms: u64) -> serde_json::Value {
    serde_json::json!({"command": host.command, "nodes": host.nodes(), "agent": agent, "deadline_ms": deadline_ms})
}

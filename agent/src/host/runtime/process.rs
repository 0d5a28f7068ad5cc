//! Runtime `process`: the agent starts the node itself, and the node outlives it.
//!
//! The node is started by a launcher (`host/program/launcher.rs`), in a session of its own and as nobody's child, so that
//! the agent's end, by whatever signal, means nothing to it. It has at least the resource limits that it had before it was
//! stopped (`host/process/limits.rs`), and stays in the agent's control group, with its nice value and processors. Nobody restarts it after a reboot: for tests, or under a supervisor of one's own.

use std::{
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::{sleep, timeout},
};

use super::{
    Process, Started, Status,
    discovery::{self, Belief, DiscoveryError, Written},
    launch::{Answer, LOCK_RETRY, LockFor, NodeCommand, NodeLock, Order, boottime_ms, node_file},
    stop_request::{StopRequest, StopRequestFile},
    stuck,
};
use crate::host::{
    files::durable::{self, FileError},
    process::{
        limits::{self, Limits},
        parent::{self, Adopting},
        process_id::{ProcessHandle, ProcessId},
    },
    program::launcher,
};

/// How long a launch may take: it writes two small files.
const LAUNCH_LIMIT: Duration = Duration::from_secs(30);
/// How long a launch that is under way is waited for before a look.
const LOCK_LIMIT: Duration = Duration::from_secs(10);
/// How long the kernel is given to end a process that was killed.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Why a node could not be started, stopped or looked at.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// A file of the state directory could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// It cannot be said whether the node runs.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// A launch holds the node's lock and does not go on.
    #[error("a start of node {name} has been under way for more than {LOCK_LIMIT:?}; {}", held(lock, *holder))]
    Busy { name: String, lock: PathBuf, holder: Option<u32> },
    /// The launcher could not be run.
    #[error("cannot run the agent's launcher")]
    Launcher(#[source] io::Error),
    /// The launcher refused or failed; nothing was started.
    #[error("cannot start node {name}: {reason}")]
    NotStarted { name: String, reason: String },
    /// The process was told to end and has not.
    #[error(
        "node {name} ({identity}) still runs {after:?} after it was told to stop, and may end at any moment; end it, then \
         repeat the command: kill -KILL {}", identity.pid
    )]
    StillRunning {
        name: String,
        identity: ProcessId,
        /// How long it was waited for.
        after: Duration,
    },
    /// A signal could not be sent.
    #[error("cannot signal node {name} ({identity})")]
    Signal { name: String, identity: ProcessId, source: io::Error },
}

fn held(lock: &Path, holder: Option<u32>) -> String {
    match holder {
        Some(pid) => {
            format!("pid {pid} holds {}; look at it (ps -fp {pid}), then type: kill -KILL {pid}", lock.display())
        }
        None => format!("somebody holds {}; to see who, type: lsof {0}", lock.display()),
    }
}

/// A node that the agent starts itself.
#[derive(Clone, Debug)]
pub struct ProcessRuntime {
    command: NodeCommand,
    nodes: PathBuf,
    launcher: Vec<String>,
    belief: Belief,
}

impl ProcessRuntime {
    /// The runtime of this node; `nodes` is the state directory's folder of nodes.
    pub fn new(command: NodeCommand, nodes: PathBuf) -> Self {
        Self { command, nodes, launcher: launcher::own(), belief: Belief::default() }
    }

    /// With what this agent takes for the node.
    pub fn believing(self, belief: Belief) -> Self {
        Self { belief, ..self }
    }

    /// With another program as launcher, which must do as [`launcher::main`]: for callers that are not the agent.
    pub fn with_launcher(self, launcher: Vec<String>) -> Self {
        Self { launcher, ..self }
    }

    pub fn command(&self) -> &NodeCommand {
        &self.command
    }

    pub(in crate::host) fn launcher(&self) -> &[String] {
        &self.launcher
    }

    /// Whether the node runs, and as which process. A launch that does not come to an end is ended: to be called by who
    /// holds the state directory, so that no other agent waits for it.
    pub async fn status(&self) -> Result<Status, ProcessError> {
        durable::create_folder(&self.nodes, 0o700)?;
        let busy = match self.look(LOCK_LIMIT).await {
            Err(busy @ ProcessError::Busy { .. }) => busy,
            looked => return looked,
        };
        let on_file = discovery::on_file(&self.nodes, &self.command.name)?;
        for launcher in on_file.into_iter().chain(stuck::launcher(&self.lock())) {
            if stuck::kill(launcher, &self.lock()).await.unwrap_or(false) {
                return self.look(LOCK_LIMIT).await;
            }
        }
        Err(busy)
    }

    /// Under the node's lock, which is waited for so long.
    async fn look(&self, limit: Duration) -> Result<Status, ProcessError> {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if let Some(_lock) = NodeLock::try_take(&self.nodes, &self.command.name, LockFor::Looking)? {
                return Ok(discovery::look(&self.nodes, &self.command, self.belief)?);
            }
            sleep(LOCK_RETRY).await;
        }
        let lock = self.lock();
        let holder = stuck::holder(&lock);
        Err(ProcessError::Busy { name: self.command.name.clone(), lock, holder })
    }

    fn lock(&self) -> PathBuf {
        node_file(&self.nodes, &self.command.name, "lock")
    }

    /// As [`ProcessRuntime::status`], but nothing is made or ended: for who only looks. Where no launch has ever made the
    /// lock's file, none is under way, or its outcome is not yet to be told.
    pub async fn peek(&self) -> Result<Status, ProcessError> {
        match self.lock().exists() {
            true => self.look(LOCK_LIMIT).await,
            false => Ok(discovery::look(&self.nodes, &self.command, self.belief)?),
        }
    }

    /// What its process is to have at least.
    pub(super) async fn limits(&self) -> Result<Limits, FileError> {
        let running = self.peek().await.ok().and_then(|status| Some(status.process()?.identity.pid));
        Limits::of_node(&self.nodes, &self.command.name, running)
    }

    /// Starts the node, unless it runs. An error means that it does not run now and will not by this call.
    pub async fn start(&self) -> Result<Started, ProcessError> {
        match self.status().await? {
            Status::Stopped => self.order_start(false).await,
            running => Ok(Started::found(running)),
        }
    }

    /// As [`ProcessRuntime::start`], for a node that an agent has stopped: one that cannot be told from what looks like it is
    /// started beside that, and where its log cannot be used its output goes elsewhere.
    pub async fn start_stopped(&self) -> Result<Started, ProcessError> {
        match self.status().await {
            Ok(status @ Status::Running { .. }) => Ok(Started::found(status)),
            Ok(Status::Stopped) | Err(ProcessError::Discovery(_)) => {
                self.clone().believing(Belief::Started(None)).order_start(true).await
            }
            Err(error) => Err(error),
        }
    }

    /// The process that looks like the node, whatever this agent has started.
    pub async fn lookalike(&self) -> Option<ProcessId> {
        let status = self.clone().believing(Belief::Looks).peek().await.ok()?;
        status.process().map(|process| process.identity)
    }

    /// Refuses a second process that can only be this node, beside the one that is.
    pub fn check_alone(&self, node: &Process) -> Result<(), ProcessError> {
        Ok(discovery::refuse_a_lookalike(&self.command, Some(node.identity.pid))?)
    }

    async fn order_start(&self, is_stopped: bool) -> Result<Started, ProcessError> {
        durable::create_folder(&self.nodes, 0o700)?;
        match timeout(LAUNCH_LIMIT, self.launch(is_stopped)).await {
            Ok(Ok(Some(Answer::Starting { identity, exe, warnings }))) => {
                Ok(Started { warnings, ..Started::new(seen(identity, Some(exe))) })
            }
            Ok(Ok(Some(Answer::Running { identity, exe }))) => Ok(Started::found(seen(identity, exe))),
            Ok(Ok(Some(Answer::Failed { reason }))) => self.not_started(reason),
            Ok(Err(error)) => Err(error),
            // What became of it is not known, so it is looked at; by now the order is void.
            Ok(Ok(None)) => self.after_silence("its launcher was killed").await,
            Err(_) => self.after_silence("its launcher did not answer").await,
        }
    }

    async fn after_silence(&self, reason: &str) -> Result<Started, ProcessError> {
        match self.status().await? {
            Status::Stopped => self.not_started(reason.into()),
            status => Ok(Started::new(status)),
        }
    }

    fn not_started(&self, reason: String) -> Result<Started, ProcessError> {
        Err(ProcessError::NotStarted { name: self.command.name.clone(), reason })
    }

    /// Gives the order and reads the last word of the answer.
    async fn launch(&self, is_stopped: bool) -> Result<Option<Answer>, ProcessError> {
        let order = self.order(is_stopped).and_then(|order| Ok(serde_json::to_vec(&order)?));
        let order = order.map_err(ProcessError::Launcher)?;
        // Nobody else learns how it ends.
        let _ = self.ending();
        let _adopting = Adopting::begin();
        let mut child = self.spawn_launcher().map_err(ProcessError::Launcher)?;
        let mut answer = Vec::new();
        if let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) {
            // A launcher that ends before it has read the order says why in its answer, or by its silence.
            let _ = stdin.write_all(&order).await;
            drop(stdin);
            let _ = stdout.read_to_end(&mut answer).await;
        }
        let _ = child.wait().await;
        let last = answer.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
        Ok(last.and_then(|line| serde_json::from_slice(line).ok()))
    }

    fn order(&self, is_stopped: bool) -> io::Result<Order> {
        Ok(Order {
            command: self.command.clone(),
            nodes: std::path::absolute(&self.nodes)?,
            agent: ProcessId::own()?,
            is_stopped,
            // Shorter than the wait for the answer, so that after the wait the order is void.
            deadline_ms: boottime_ms() + LAUNCH_LIMIT.as_secs() * 1_000 - 1_000,
        })
    }

    /// In a process group of its own: an interrupt typed at the agent's terminal is not for the launcher.
    fn spawn_launcher(&self) -> io::Result<Child> {
        let (program, arguments) = self.launcher.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    }

    /// How the node on file ended, where this agent has started it and has not told it yet.
    pub fn ending(&self) -> Option<String> {
        let process = discovery::on_file(&self.nodes, &self.command.name).ok()??;
        parent::ending(process)
    }

    /// The file that a launcher writes right before it becomes the node.
    pub(in crate::host) fn started_file(&self) -> PathBuf {
        node_file(&self.nodes, &self.command.name, "json")
    }

    /// What the node's output went to when it was started: its log, or what was opened instead; and where it begins there. `None`
    /// where the start that this agent knows of could not be put on file.
    pub(in crate::host) fn output(&self) -> Option<(PathBuf, Option<u64>)> {
        let on_file = discovery::output_on_file(&self.nodes, &self.command.name);
        let written = match (self.belief, on_file) {
            (Belief::Started(Some(started)), Ok(Some((identity, written)))) if started == identity => written,
            (Belief::Started(Some(_)), _) => return None,
            (_, Ok(Some((_, written)))) => written,
            _ => Written::default(),
        };
        Some((written.instead.unwrap_or_else(|| self.command.log.clone()), written.begins))
    }

    /// Tells the node to end (SIGTERM) and waits for it. Over the limit it is killed where `kill` says so.
    pub async fn stop(&self, limit: Duration, kill: bool) -> Result<(), ProcessError> {
        let Status::Running { process: Some(Process { identity, .. }) } = self.status().await? else { return Ok(()) };
        // Whoever starts it again has limits of its own.
        limits::keep(&self.nodes, &self.command.name, identity.pid)?;
        self.end(identity, limit, kill).await
    }

    async fn end(&self, identity: ProcessId, limit: Duration, kill: bool) -> Result<(), ProcessError> {
        let failed = |source| ProcessError::Signal { name: self.command.name.clone(), identity, source };
        let still = |after| ProcessError::StillRunning { name: self.command.name.clone(), identity, after };
        let Some(handle) = identity.open().map_err(failed)? else { return Ok(()) };
        let told = StopRequestFile::of(&self.nodes, &self.command.name);
        // A state directory that takes nothing any more is no reason to leave a failed binary running.
        let _ = told.write(&StopRequest::now(Some(identity), true).map_err(failed)?);
        handle.signal(Signal::TERM).map_err(failed)?;
        // A process that was suspended would only hear of it when somebody wakes it.
        handle.signal(Signal::CONT).map_err(failed)?;
        if !has_ended(&handle, limit).await.map_err(failed)? {
            if !kill {
                return Err(still(limit));
            }
            handle.signal(Signal::KILL).map_err(failed)?;
            if !has_ended(&handle, KILL_LIMIT).await.map_err(failed)? {
                return Err(still(limit + KILL_LIMIT));
            }
        }
        told.forget();
        Ok(())
    }
}

async fn has_ended(handle: &ProcessHandle, limit: Duration) -> io::Result<bool> {
    timeout(limit, handle.ended()).await.map_or(Ok(false), |ended| ended.map(|()| true))
}

fn seen(identity: ProcessId, exe: Option<PathBuf>) -> Status {
    Status::Running { process: Some(Process { identity, exe }) }
}

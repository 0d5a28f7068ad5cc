//! Runtime `command`: the node is started, stopped and looked at by the operator's own commands.
//!
//! Argument lists, never a shell. `status` exits 0 when the node runs and 3 when it is stopped (the codes of the
//! Linux Standard Base for init scripts); it prints the pid as its first word if it knows it. The base's 1 and 2, dead beside a
//! file that was left, are what many programs exit with that failed: they are believed of a process that is seen to be gone.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tokio::time::sleep;

pub use super::command_error::{CommandError, Run};
use super::{
    Found, Judged, Listens, Process, Started, Status,
    stop_lock::StopLock,
    stop_request::{StopRequest, StopRequestFile},
    stuck,
};
use crate::{
    host::{
        files::durable::{self, At},
        process::{listener::shown, process_id::ProcessId},
        program::{
            exec::{self, Ended, ExecError, Output, Unwaited},
            program_path,
        },
        runtime::launch::node_file,
    },
    words::with_causes,
};

/// How long `start` may take.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long `status` may take.
const STATUS_LIMIT: Duration = Duration::from_secs(10);
/// How often `status` is asked while a stop is waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Until then a node that was killed must have ended.
const KILL_LIMIT: Duration = Duration::from_secs(10);
/// `status` of a stopped service (LSB, "program is not running").
const NOT_RUNNING: i32 = 3;

/// `status` of one that died and left its pid or lock file (LSB).
const DIED: [i32; 2] = [1, 2];

/// The last process that `status` named; shared by all that is made of one node.
#[derive(Clone, Debug, Default)]
pub struct LastNamed(Arc<Mutex<Option<ProcessId>>>);

impl LastNamed {
    fn set(&self, process: Option<ProcessId>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = process;
    }

    fn get(&self) -> Option<ProcessId> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The operator's commands for one node, all templates expanded.
#[derive(Clone, Debug)]
pub struct CommandRuntime {
    /// The node's name in the playbook.
    pub name: String,
    pub start: Vec<String>,
    /// Stops it and ends, before or after the node itself has ended.
    pub stop: Vec<String>,
    pub status: Vec<String>,
    /// How long the stop command of an earlier agent is waited for: as long as a stop may take.
    pub patience: Duration,
    /// The state directory's folder of nodes, for what start and stop print.
    pub nodes: PathBuf,
    /// What `status` has named.
    pub last_named: LastNamed,
}

impl Found {
    /// The process that is to end.
    pub fn process(self, status: &Status) -> Option<ProcessId> {
        let named = || status.process().map(|process| process.identity);
        self.judged().map(|judged| judged.node).or_else(named)
    }

    fn judged(self) -> Option<Judged> {
        match self {
            Self::Shown(judged) => Some(judged),
            Self::Stopped | Self::Unknown => None,
        }
    }
}

impl CommandRuntime {
    /// Starts the node unless it runs, and says what `status` says then.
    pub async fn start(&self) -> Result<Started, CommandError> {
        match self.status().await? {
            Status::Stopped => self.act("start", &self.start, Stdio::null(), START_LIMIT).await?,
            running => return Ok(Started::found(running)),
        }
        Ok(Started::new(self.peek().await?))
    }

    /// As [`CommandRuntime::start`], for a node that an agent has stopped: neither a `status` that fails nor a state directory
    /// that takes no output keeps it down (I-10); nor one that only says that it runs, where it `listens` nowhere.
    pub async fn start_stopped(&self, listens: Listens) -> Result<Started, CommandError> {
        let mut warnings = Vec::new();
        match self.status().await {
            Ok(Status::Stopped) | Err(CommandError::Failed { .. } | CommandError::Exec { .. }) => {}
            Ok(Status::Running { .. }) if listens == Listens::Nowhere => warnings.push(
                "its `status` says that it runs, and nobody listens at its address: its `start` was run all the same"
                    .to_owned(),
            ),
            running => return Ok(Started::found(running?)),
        }
        let acted = self.act("start", &self.start, Stdio::null(), START_LIMIT).await;
        match acted {
            Err(error @ (CommandError::File(_) | CommandError::Exec { source: ExecError::OutputFile { .. }, .. })) => {
                warnings.push(format!("what `start` prints goes nowhere, since {}", with_causes(&error)));
                self.act_into("start", &self.start, Stdio::null(), START_LIMIT, &Output::Nowhere).await?;
            }
            acted => acted?,
        }
        match self.peek().await {
            Ok(status) => Ok(Started { warnings, ..Started::new(status) }),
            Err(error @ CommandError::Exec { .. }) => {
                warnings
                    .push(format!("it was started, and whether it runs is not known, since {}", with_causes(&error)));
                Ok(Started { warnings, ..Started::new(Status::Running { process: None }) })
            }
            Err(error) => Err(error),
        }
    }

    /// Stops the node and waits until `status` says so, and the process that was found has ended. Over the limit that
    /// process is killed where `kill` says so, and no other: what `status` says may come from a pid file of the node's user.
    ///
    /// Nothing is stopped that could not be started again.
    pub async fn stop(&self, limit: Duration, kill: bool, found: Found) -> Result<(), CommandError> {
        let judged = found.judged();
        let lock = self.take_stop_lock().await?;
        let begun = Instant::now();
        let status = self.peek().await?;
        if has_ended(&status, judged) {
            return Ok(());
        }
        self.must_be_found(&status, found)?;
        self.check_owner("start", &self.start, Run::Later)?;
        self.check_owner("stop", &self.stop, Run::Now)?;
        let stdin = lock.stdin().at("pass on", &self.stop_lock())?;
        let told = StopRequestFile::of(&self.nodes, &self.name);
        let about =
            StopRequest::now(found.process(&status), judged.is_some()).at("look for", Path::new("/proc/self"))?;
        // A state directory that takes nothing any more is no reason to leave a failed binary running.
        let _ = told.write(&about);
        let stopped = self.act("stop", &self.stop, stdin, limit).await;
        if !matches!(stopped, Err(CommandError::Exec { .. })) {
            lock.release(&self.stop_lock());
        }
        // One that could not even be run has told nobody.
        let may_kill = kill && judged.is_some();
        match stopped {
            Err(CommandError::Owner { .. } | CommandError::File(_)) => {
                told.forget();
                return stopped;
            }
            Err(CommandError::Exec { ref source, .. }) if !source.was_run() && !may_kill => {
                told.forget();
                return stopped;
            }
            _ => {}
        }
        let stopped = self.end(stopped, &status, (begun, limit), kill, judged).await;
        if stopped.is_ok() {
            told.forget();
        }
        stopped
    }

    /// Waits for the end of a node whose stop command was run.
    async fn end(
        &self,
        stopped: Result<(), CommandError>,
        status: &Status,
        (begun, limit): (Instant, Duration),
        kill: bool,
        judged: Option<Judged>,
    ) -> Result<(), CommandError> {
        match (stopped, self.ended_by(begun + limit, judged).await?, judged) {
            (_, true, _) => Ok(()),
            (_, false, Some(judged)) if kill => self.kill(judged, begun).await,
            (stopped, false, None) if kill => Err(CommandError::NotKilled {
                name: self.name.clone(),
                after: shown_since(begun),
                named: match status.process() {
                    Some(process) => format!("`status` named {}", shown(process.identity.pid)),
                    None => "`status` named no process that is there".into(),
                },
                source: stopped.err().map(Box::new),
            }),
            (Err(error), false, _) => Err(error),
            (Ok(()), false, _) => Err(self.still_running(begun)),
        }
    }

    /// `status` says that it runs.
    fn must_be_found(&self, status: &Status, found: Found) -> Result<(), CommandError> {
        let named = status.process().map(|process| process.identity);
        let before = match (found, named) {
            (Found::Stopped, _) => "none ran".to_owned(),
            (Found::Shown(judged), Some(named)) if named != judged.named => format!("it was {}", judged.named),
            _ => return Ok(()),
        };
        let now = named.map_or_else(|| "one without its pid".to_owned(), |named| shown(named.pid));
        Err(CommandError::Another { name: self.name.clone(), before, now })
    }

    /// Whether the node runs, and as which process if `status` knows it. Asked once no stop of an earlier agent is under
    /// way any more: before that a node that runs may be gone in a moment.
    pub async fn status(&self) -> Result<Status, CommandError> {
        let begun = Instant::now();
        while StopLock::is_held(&self.stop_lock())? {
            self.stop_goes_on(begun).await?;
        }
        self.peek().await
    }

    /// Whether the node runs at this moment.
    pub async fn peek(&self) -> Result<Status, CommandError> {
        self.check_owner("status", &self.status, Run::Now)?;
        let failed = |source| self.not_run("status", source);
        let ended = exec::run(&self.status, STATUS_LIMIT, &Output::Kept).await.map_err(failed)?;
        match ended.code {
            Some(0) => {
                let process = named_process(&ended.stdout);
                if let Some(process) = &process {
                    self.last_named.set(Some(process.identity));
                }
                Ok(Status::Running { process })
            }
            Some(NOT_RUNNING) => Ok(Status::Stopped),
            Some(code) if DIED.contains(&code) && self.is_seen_to_be_gone() => Ok(Status::Stopped),
            _ => Err(self.failed("status", "exit 0 when it runs or exit 3 when it is stopped", &ended)),
        }
    }

    fn is_seen_to_be_gone(&self) -> bool {
        let told = || StopRequestFile::of(&self.nodes, &self.name).read().and_then(|told| told.process);
        self.last_named.get().or_else(told).is_some_and(|process| process.is_alive().is_ok_and(|is_alive| !is_alive))
    }

    async fn take_stop_lock(&self) -> Result<StopLock, CommandError> {
        durable::create_folder(&self.nodes, 0o700)?;
        let begun = Instant::now();
        loop {
            match StopLock::try_take(&self.stop_lock())? {
                Some(lock) => return Ok(lock),
                None => self.stop_goes_on(begun).await?,
            }
        }
    }

    async fn stop_goes_on(&self, since: Instant) -> Result<(), CommandError> {
        if since.elapsed() >= self.patience {
            let (name, lock) = (self.name.clone(), self.stop_lock());
            let holder = stuck::holder(&lock);
            return Err(CommandError::StopUnderWay { name, after: self.patience, lock, holder });
        }
        sleep(POLL_INTERVAL).await;
        Ok(())
    }

    fn stop_lock(&self) -> PathBuf {
        node_file(&self.nodes, &self.name, "stop")
    }

    /// What the command leaves running may go on writing where it wrote: so into a file.
    async fn act(
        &self,
        what: &'static str,
        argv: &[String],
        stdin: Stdio,
        limit: Duration,
    ) -> Result<(), CommandError> {
        durable::create_folder(&self.nodes, 0o700)?;
        let output = Output::File(self.output(what));
        self.act_into(what, argv, stdin, limit, &output).await
    }

    /// Where the output of the last `start` is kept.
    pub(crate) fn start_output(&self) -> PathBuf {
        self.output("start")
    }

    fn output(&self, what: &str) -> PathBuf {
        node_file(&self.nodes, &self.name, &format!("{what}.log"))
    }

    async fn act_into(
        &self,
        what: &'static str,
        argv: &[String],
        stdin: Stdio,
        limit: Duration,
        output: &Output,
    ) -> Result<(), CommandError> {
        self.check_owner(what, argv, Run::Now)?;
        if what == "start" {
            // Until it is named, nothing shows that it is gone.
            self.last_named.set(None);
        }
        // A member is left in the middle of neither: who looks after it next waits for a stop, and starts what is down.
        let ended = exec::run_with(argv, stdin, limit, output, Unwaited::GoesOn).await;
        let ended = ended.map_err(|source| self.not_run(what, source))?;
        if ended.is_success() { Ok(()) } else { Err(self.failed(what, "exit 0", &ended)) }
    }

    /// Asked each time, as a hook is: members are looked at before preflight, and the agent's rights are root's.
    fn check_owner(&self, what: &'static str, argv: &[String], run: Run) -> Result<(), CommandError> {
        let program = argv.first().map_or("", String::as_str);
        program_path::check(program).map_err(|source| CommandError::Owner {
            name: self.name.clone(),
            what,
            argv: argv.to_vec(),
            run,
            source: source.into(),
        })
    }

    fn not_run(&self, what: &'static str, source: ExecError) -> CommandError {
        CommandError::Exec { name: self.name.clone(), what, source }
    }

    async fn ended_by(&self, deadline: Instant, judged: Option<Judged>) -> Result<bool, CommandError> {
        while !has_ended(&self.peek().await?, judged) {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(true)
    }

    async fn kill(&self, judged: Judged, begun: Instant) -> Result<(), CommandError> {
        if let Ok(Some(handle)) = judged.node.open() {
            let _ = handle.signal(Signal::KILL);
        }
        if self.ended_by(Instant::now() + KILL_LIMIT, Some(judged)).await? {
            Ok(())
        } else {
            Err(self.still_running(begun))
        }
    }

    fn still_running(&self, begun: Instant) -> CommandError {
        CommandError::StillRunning { name: self.name.clone(), after: shown_since(begun) }
    }

    fn failed(&self, what: &'static str, expected: &'static str, ended: &Ended) -> CommandError {
        let (how, output) = (ended.how.clone(), ended.output().to_owned());
        CommandError::Failed { name: self.name.clone(), what, how, expected, output }
    }
}

/// As fine as people read it.
fn shown_since(begun: Instant) -> Duration {
    Duration::from_millis(100 * (begun.elapsed().as_millis() / 100) as u64)
}

/// A `status` that says so too early is not believed while the process runs that was the node.
fn has_ended(status: &Status, judged: Option<Judged>) -> bool {
    !status.is_running() && !judged.is_some_and(|judged| judged.node.is_alive().unwrap_or(true))
}

fn named_process(stdout: &str) -> Option<Process> {
    let pid = stdout.split_ascii_whitespace().next()?.parse().ok()?;
    let identity = ProcessId::of(pid).ok()??;
    Some(Process { identity, exe: identity.executable().ok().flatten() })
}

#[cfg(test)]
#[path = "command_test.rs"]
mod tests;

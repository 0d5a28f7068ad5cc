//! One command run to its end: an argument list, never a shell, with a deadline and bounded output.
//!
//! For hooks, for the `command` runtime and for `--version`. A node itself is never started this way: it would end
//! with the agent (see `launcher.rs`). When nobody waits for a command any more, as after a second signal, it is killed
//! with its process group, unless it is meant to outlive the agent. What an agent runs that is killed itself goes on:
//! half of a hook may do more harm than all of it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::{fs::OpenOptionsExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    task::JoinHandle,
    time::timeout,
};

use crate::host::process::credentials::Credentials;

/// How much of a command's output is kept, in bytes: the end of it, where the reason stands.
pub const OUTPUT_KEPT: usize = 8 * 1024;
/// How much of that stands in a message, in characters: its end.
const OUTPUT_SHOWN: usize = 1_000;

/// How long output is waited for once the command itself has ended, since what it left running may hold the pipe.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// How long a command that was killed is waited for.
const REAP_LIMIT: Duration = Duration::from_secs(1);
/// How often it is looked at meanwhile.
const REAP_PAUSE: Duration = Duration::from_millis(2);

/// Where a command's output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Through pipes; the end of it is kept in memory. What the command leaves running finds the pipes closed.
    Kept,
    /// Into this file, emptied first: for commands that leave something running, which goes on writing there.
    File(PathBuf),
    /// `/dev/null`.
    Nowhere,
}

/// What becomes of a command when nobody waits for it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwaited {
    /// It is killed with its process group.
    Killed,
    /// As [`Unwaited::Killed`], for a command that begins a session, and so a group, by itself.
    KilledInItsSession,
    /// It goes on: its work is not the agent's to break off.
    GoesOn,
}

/// A command that ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// How it ended, in words: `exit 1`, `signal 9`.
    pub how: String,
    /// The end of what it wrote to stdout (with [`Output::File`], to both).
    pub stdout: String,
    /// The end of what it wrote to stderr.
    pub stderr: String,
}

/// Why a command did not end by itself.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    #[error("the command is empty: expected a list that begins with the program")]
    Empty,
    /// It could not be started.
    #[error("cannot run {program}")]
    Start {
        /// The program, as it was given.
        program: String,
        source: io::Error,
    },
    /// The file for its output could not be opened.
    #[error("cannot open {} for the output of {program}", path.display())]
    OutputFile {
        /// The program, as it was given.
        program: String,
        path: PathBuf,
        source: io::Error,
    },
    /// It was still running at the deadline, and was killed with all of its process group.
    #[error("{program} was still running after {after:?} and {}{}", end_of_killed(*unkilled), quoted(output))]
    TimedOut {
        /// The program, as it was given.
        program: String,
        after: Duration,
        /// Its pid, where it has not ended by that: the kernel waits in its place for something that does not come, such as
        /// the answer of a file system.
        unkilled: Option<u32>,
        output: String,
    },
}

impl ExecError {
    /// Whether the command ran, though not to its end.
    pub fn was_run(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }
}

impl Ended {
    /// Whether it ended with exit code 0.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// What a person wants to read of it: stderr, or stdout where stderr is empty.
    pub fn output(&self) -> &str {
        telling(&self.stdout, &self.stderr)
    }
}

/// Runs a command in a process group of its own, stdin `/dev/null`, until it ends or its time is over.
pub async fn run(argv: &[String], limit: Duration, output: &Output) -> Result<Ended, ExecError> {
    run_with(argv, Stdio::null(), limit, output, Unwaited::Killed).await
}

/// As [`run`], with another stdin, or for a command that outlives the agent.
pub async fn run_with(
    argv: &[String],
    stdin: Stdio,
    limit: Duration,
    output: &Output,
    unwaited: Unwaited,
) -> Result<Ended, ExecError> {
    let Some((program, arguments)) = argv.split_first() else { return Err(ExecError::Empty) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(stdin);
    carry_out(command, program, limit, output, unwaited).await
}

/// As [`run`], as another user where that is to be had, with these variables alone.
pub async fn run_as(
    argv: &[String],
    user: &Credentials,
    variables: &[(&str, &str)],
    limit: Duration,
) -> Result<Ended, ExecError> {
    let Some((program, arguments)) = argv.split_first() else { return Err(ExecError::Empty) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).current_dir("/").env_clear().envs(variables.iter().copied());
    let own = Credentials::own();
    if (user.uid, user.gid) != (own.uid, own.gid) {
        // The further groups are root's until then, and are given up (std, `CommandExt::uid`).
        command.uid(user.uid).gid(user.gid);
    }
    carry_out(command, program, limit, &Output::Kept, Unwaited::Killed).await
}

async fn carry_out(
    mut command: Command,
    program: &str,
    limit: Duration,
    output: &Output,
    unwaited: Unwaited,
) -> Result<Ended, ExecError> {
    if unwaited != Unwaited::KilledInItsSession {
        command.process_group(0);
    }
    let file = direct(&mut command, program, output)?;
    let child = spawn(&mut command).await.map_err(|source| ExecError::Start { program: program.into(), source })?;
    let mut running = Running { child, unwaited, is_given_up: false };
    let pipes = (tail_of(running.child.stdout.take()), tail_of(running.child.stderr.take()));
    let status = running.wait(limit).await;
    let (stdout, stderr) = match &file {
        Some(path) => (end_of_file(path), String::new()),
        None => (finish(pipes.0).await, finish(pipes.1).await),
    };
    match status {
        Some(status) => Ok(Ended { code: status.code(), how: in_words(status), stdout, stderr }),
        None => Err(ExecError::TimedOut {
            program: program.into(),
            after: limit,
            unkilled: running.child.id(),
            output: telling(&stdout, &stderr).to_owned(),
        }),
    }
}

/// A file that was written a moment ago may still be open for writing in a process that another thread is just
/// starting (ETXTBSY, execve(2)); that is over as soon as that process has become its own program.
async fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..50 {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            other => return other,
        }
    }
    command.spawn()
}

fn direct(command: &mut Command, program: &str, output: &Output) -> Result<Option<PathBuf>, ExecError> {
    match output {
        Output::Kept => {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            Ok(None)
        }
        Output::Nowhere => {
            command.stdout(Stdio::null()).stderr(Stdio::null());
            Ok(None)
        }
        Output::File(path) => {
            let failed = |source| ExecError::OutputFile { program: program.into(), path: path.clone(), source };
            let file = open_empty(path).map_err(failed)?;
            command.stdout(file.try_clone().map_err(failed)?).stderr(file);
            Ok(Some(path.clone()))
        }
    }
}

/// Emptied, and appended to: so that a leftover writer of an earlier run leaves no hole in it.
fn open_empty(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.set_len(0)?;
    Ok(file)
}

/// A command that has not been reaped yet: so its pid, which is its group's, is nobody else's.
struct Running {
    child: Child,
    unwaited: Unwaited,
    /// It was killed, and has not ended by that.
    is_given_up: bool,
}

impl Running {
    /// `None` when the time was over: then the whole group has been killed, and the command itself reaped unless it cannot
    /// be killed.
    async fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        if let Ok(ended) = timeout(limit, self.child.wait()).await {
            // An error of wait would mean that it is no child of ours, which it is.
            return ended.ok();
        }
        self.kill();
        self.is_given_up = timeout(REAP_LIMIT, self.child.wait()).await.is_err();
        None
    }

    fn kill(&mut self) {
        // None once it was reaped.
        let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) else { return };
        let _ = kill_process_group(pid, Signal::KILL);
        // One that has not begun its session yet has no group of its own.
        let _ = kill_process(pid, Signal::KILL);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.unwaited == Unwaited::GoesOn || self.is_given_up {
            return;
        }
        self.kill();
        // What was killed is gone in a moment, and reaped here: to the end of this process nobody else would.
        let begun = Instant::now();
        while begun.elapsed() < REAP_LIMIT && matches!(self.child.try_wait(), Ok(None)) {
            sleep(REAP_PAUSE);
        }
    }
}

/// Reads to the end without ever keeping more than the end.
fn tail_of(pipe: Option<impl AsyncRead + Unpin + Send + 'static>) -> Option<Tail> {
    let mut pipe = pipe?;
    let (sender, receiver) = tokio::sync::watch::channel(Vec::new());
    let task = tokio::spawn(async move {
        let mut chunk = vec![0; OUTPUT_KEPT];
        while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
            sender.send_modify(|kept: &mut Vec<u8>| {
                kept.extend_from_slice(&chunk[..count]);
                kept.drain(..kept.len().saturating_sub(OUTPUT_KEPT));
            });
        }
    });
    Some(Tail { task, kept: receiver })
}

struct Tail {
    task: JoinHandle<()>,
    kept: tokio::sync::watch::Receiver<Vec<u8>>,
}

async fn finish(tail: Option<Tail>) -> String {
    let Some(mut tail) = tail else { return String::new() };
    if timeout(OUTPUT_GRACE, &mut tail.task).await.is_err() {
        tail.task.abort();
    }
    text(&tail.kept.borrow())
}

/// No more is read than is kept: whoever has the file open may make it as large as a file can be.
fn end_of_file(path: &Path) -> String {
    let end = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let kept = OUTPUT_KEPT as u64;
        file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(kept)))?;
        let mut end = Vec::new();
        file.take(kept).read_to_end(&mut end)?;
        Ok(end)
    };
    text(&end().unwrap_or_default())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn telling<'a>(stdout: &'a str, stderr: &'a str) -> &'a str {
    if stderr.is_empty() { stdout } else { stderr }
}

fn end_of_killed(unkilled: Option<u32>) -> String {
    unkilled.map_or("was killed".into(), |pid| format!("could not be killed (pid {pid})"))
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown end".into(),
    }
}

/// Output as the end of a sentence; nothing when there is none.
pub(crate) fn quoted(output: &str) -> String {
    let left_out = output.chars().count().saturating_sub(OUTPUT_SHOWN);
    let end: String = output.chars().skip(left_out).collect();
    match (end.is_empty(), left_out) {
        (true, _) => String::new(),
        (false, 0) => format!(": {end}"),
        (false, _) => format!(": …{end}"),
    }
}

#[cfg(test)]
#[path = "exec_test.rs"]
mod tests;

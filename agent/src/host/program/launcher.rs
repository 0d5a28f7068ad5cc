//! The launcher: the agent run once more, as `agent __launch`, to become a node.
//!
//! It runs twice. The first process, in a process group of its own, closes what it inherited, starts the second and
//! ends; so the second is nobody's child but init's, and as no group's leader it may begin a session (setsid(2)). It
//! takes the node's lock, writes itself on file as the node and executes the node in its own place. Why this can be
//! killed anywhere is said in `runtime/launch.rs`.
//!
//! With another argument it only tries what it would do as the node's user (`trial.rs`), or becomes a foreign program
//! that is asked for its version (`probe.rs`).
//!
//! A detour, instead of a few calls between fork and exec, since those take `unsafe` code and this does not.

use std::{
    ffi::CString,
    fs::{self, File},
    io::{self, Read, Write, stdin, stdout},
    os::{
        fd::{AsFd, AsRawFd, RawFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread::sleep,
    time::Duration,
};

use nix::{
    sys::signal::SigSet,
    unistd::{Uid, User},
};
use rustix::{
    fs::Mode,
    process::{Signal, set_parent_process_death_signal, umask},
    stdio,
};
use tokio::signal::unix::{SignalKind, signal};

use super::{
    probe::{self, ProbeError},
    trial::{self, Switched, Trial},
};
use crate::{
    guarded::{At, FileError, wait_for_writes},
    host::{
        files::log::{self, LogError},
        process::{
            limits::{LimitError, Limits},
            process_id::ProcessId,
        },
        runtime::{
            Process,
            discovery::{self, DiscoveryError, Written},
            launch::{Answer, LOCK_RETRY, LockFor, NodeCommand, NodeLock, Order, boottime_ms},
        },
    },
    words::with_causes,
};

/// The hidden subcommand of the agent that is the launcher.
pub const SUBCOMMAND: &str = "__launch";
/// Its argument in the second process.
const SESSION: &str = "session";
/// A node's `PATH`, unless the playbook gives one.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#[derive(Debug, thiserror::Error)]
enum LaunchError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error("cannot {doing}")]
    System { doing: &'static str, source: io::Error },
    #[error(transparent)]
    NotExecuted(#[from] NotExecuted),
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error(transparent)]
    Limit(#[from] LimitError),
    #[error("the order to start it is no order")]
    Order(#[source] serde_json::Error),
    #[error("the program must be an absolute path, not `{}`", .0.display())]
    RelativeProgram(PathBuf),
    #[error("there is no user `{0}`")]
    NoUser(String),
    #[error("only root can start it as user `{0}`")]
    NotRoot(String),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the order to start it came too late")]
    Late,
    #[error("the agent that ordered it has ended")]
    AgentGone,
}

/// The one call that does not return when it succeeds returned.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {}", program.display())]
struct NotExecuted {
    program: PathBuf,
    source: io::Error,
}

/// Gives a system call's error its verb.
fn failed<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> LaunchError {
    move |source| LaunchError::System { doing, source: source.into() }
}

/// Whether a process with these arguments was started as one that becomes a node.
pub(crate) fn is_one(arguments: &[String]) -> bool {
    matches!(arguments, [_, subcommand, session] if subcommand == SUBCOMMAND && session == SESSION)
}

/// The launcher of this agent. Not by its path: that may name another agent by now.
pub(crate) fn own() -> Vec<String> {
    vec!["/proc/self/exe".into(), SUBCOMMAND.into()]
}

/// Runs the launcher; `argument` is what follows [`SUBCOMMAND`]. To be called before any thread is started.
pub fn main(argument: Option<&str>) -> ExitCode {
    // Closed by the exec, which is how the agent learns of it.
    let Ok(mut agent) = stdout().as_fd().try_clone_to_owned().map(File::from) else { return ExitCode::FAILURE };
    let done = match argument {
        None => begin(&agent),
        Some(SESSION) => become_node(&mut agent),
        Some(trial::ARGUMENT) => try_as_user(),
        Some(probe::ARGUMENT) => ask_as_user(&agent),
        Some(_) => return ExitCode::from(2),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            answer(&mut agent, &Answer::Failed { reason: with_causes(&error) });
            ExitCode::FAILURE
        }
    }
}

fn begin(agent: &File) -> Result<(), LaunchError> {
    close_inherited(agent.as_raw_fd()).map_err(failed("close inherited descriptors"))?;
    let mut order = Vec::new();
    stdin().read_to_end(&mut order).map_err(failed("read the order"))?;
    // An order that the agent was killed over while writing it is none.
    serde_json::from_slice::<Order>(&order).map_err(LaunchError::Order)?;
    let mut second = Command::new("/proc/self/exe")
        .args([SUBCOMMAND, SESSION])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(failed("start the second launcher"))?;
    match second.stdin.take() {
        Some(mut pipe) => pipe.write_all(&order).map_err(failed("hand the order on")),
        None => Ok(()),
    }
}

fn ask_as_user(agent: &File) -> Result<(), LaunchError> {
    match probe::become_program(agent.as_raw_fd())? {}
}

fn try_as_user() -> Result<(), LaunchError> {
    let trial = Trial::read().map_err(LaunchError::Order)?;
    trial.limits.as_ref().map_or(Ok(()), Limits::give)?;
    become_user(trial.user.as_deref().map(find_user).transpose()?.as_ref())?;
    // That user may stop it, and an agent that is killed waits for nobody. The change of user would take it back.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed("die with the agent"))?;
    Ok(trial.look()?)
}

/// Closes all but stdin, stdout and stderr: whoever started the agent may have left files open that are no node's
/// business, and that a node would keep open for years.
pub(crate) fn close_inherited(own: RawFd) -> io::Result<()> {
    let names =
        fs::read_dir("/proc/self/fd")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok());
    // The list is complete, and its own descriptor closed, before any other is.
    let inherited: Vec<RawFd> = names.filter(|fd| *fd > 2 && *fd != own).collect();
    for fd in inherited {
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

/// The second process. Returns only when it did not become the node.
fn become_node(agent: &mut File) -> Result<(), LaunchError> {
    rustix::process::setsid().map_err(failed("begin a session"))?;
    let order: Order = serde_json::from_reader(stdin().lock()).map_err(LaunchError::Order)?;
    // Held until this process is the node, or has ended: nobody is to look at what is half done.
    std::mem::forget(take_lock(&order)?);
    if !order.agent.is_alive().map_err(failed("look for the agent"))? {
        return Err(LaunchError::AgentGone);
    }
    // What only looks like the node its agent has seen, or passes over. Here it is not looked for: a process may keep whoever
    // reads its command line waiting, and no thread may be left waiting when the user changes.
    let known = match discovery::known(&order.nodes, &order.command.name) {
        // A node that was stopped for its step is started whatever became of its file (I-10).
        Err(discovery::DiscoveryError::BadFile { .. }) if order.is_stopped => None,
        known => known?,
    };
    match known {
        Some(Process { identity, exe }) => {
            answer(agent, &Answer::Running { identity, exe });
            Ok(())
        }
        None => Err(execute(&order, agent)?.into()),
    }
}

/// Waits for the node's lock, as long as the order stands.
fn take_lock(order: &Order) -> Result<NodeLock, LaunchError> {
    while boottime_ms() < order.deadline_ms {
        match NodeLock::try_take(&order.nodes, &order.command.name, LockFor::Starting)? {
            // Asked again under the lock: this process may have been frozen in between.
            Some(lock) if boottime_ms() < order.deadline_ms => return Ok(lock),
            Some(_) => break,
            None => sleep(LOCK_RETRY),
        }
    }
    Err(LaunchError::Late)
}

/// Becomes the node, or says why the last step failed. What can fail is tried before the node is on file; what stays
/// on file after a failure is a process that has ended, which says nothing.
///
/// That it can't be put on file, on a disk that is full, read-only or broken, is no reason to leave a node down: the file
/// that stays names a dead process, and so the node is found by its looks.
fn execute(order: &Order, agent: &mut File) -> Result<NotExecuted, LaunchError> {
    let Order { command, nodes, is_stopped, .. } = order;
    umask(Mode::from_bits_truncate(0o022));
    let program = program(command)?;
    let exe = fs::canonicalize(program).at("find", program)?;
    let user = command.user.as_deref().map(find_user).transpose()?;
    let other = user.as_ref().filter(|user| is_other(user));
    let (log, instead) = match log::open(&command.log, other) {
        // It is down by our hand: its output is worth less than the node.
        Err(error) if *is_stopped => {
            let (file, instead) = log::open_instead(nodes, command, error)?;
            (file, Some(instead))
        }
        log => (log?, None),
    };
    let nothing = File::open("/dev/null").at("open", Path::new("/dev/null"))?;
    let identity = ProcessId::own().map_err(failed("read the launcher's own identity"))?;
    default_signals().map_err(failed("reset signals"))?;
    // Before the user changes: only root may raise them. From here on the files below are none too large.
    Limits::of_node(nodes, &command.name, None)?.give_to_start()?;
    let begins = log.metadata().ok().filter(fs::Metadata::is_file).map(|log| log.len());
    let written = Written { instead: instead.as_ref().map(|instead| instead.path.clone()), begins };
    let unfiled = discovery::put_on_file(nodes, &command.name, identity, exe.clone(), written).err().map(|error| {
        format!("it was started, and is found by its executable and arguments alone, since {}", with_causes(&error))
    });
    become_user(user.as_ref())?;
    wait_for_writes(&log).at("use the log", &command.log)?;
    redirect(&nothing, &log).map_err(failed("redirect stdin, stdout and stderr"))?;
    let warnings = instead.into_iter().map(|instead| instead.warning).chain(unfiled).collect();
    answer(agent, &Answer::Starting { identity, exe, warnings });
    Ok(NotExecuted { program: program.into(), source: exec(&mut prepared(command, program, user.as_ref())) })
}

/// Returns only when it failed. A file that was unpacked a moment ago may still be open for writing in a process that
/// is just being started elsewhere (ETXTBSY); that is over in a moment.
fn exec(prepared: &mut Command) -> io::Error {
    let mut error = prepared.exec();
    for _ in 0..100 {
        if error.kind() != io::ErrorKind::ExecutableFileBusy {
            break;
        }
        sleep(Duration::from_millis(10));
        error = prepared.exec();
    }
    error
}

/// A path, never a name to be looked up: what runs must be known before it runs.
fn program(command: &NodeCommand) -> Result<&Path, LaunchError> {
    match command.argv.first().map(Path::new) {
        Some(program) if program.is_absolute() => Ok(program),
        other => Err(LaunchError::RelativeProgram(other.unwrap_or(Path::new("")).into())),
    }
}

/// Whether a node could be started as this user; why not, in words.
pub(crate) fn check_user(name: &str) -> Result<(), String> {
    find_user(name).map(drop).map_err(|error| with_causes(&error))
}

/// User and group of a node that does not run as the agent's own user.
pub(crate) fn other_user(name: &str) -> Option<(u32, u32)> {
    let user = find_user(name).ok().filter(is_other)?;
    Some((user.uid.as_raw(), user.gid.as_raw()))
}

/// The name of a user by its number, where it has one.
pub(crate) fn user_name(user: u32) -> Option<String> {
    User::from_uid(Uid::from_raw(user)).ok().flatten().map(|user| user.name)
}

/// A user cannot read a file that is to take another's place.
#[derive(Debug, thiserror::Error)]
#[error("{user} {said}")]
pub struct NotReadable {
    pub user: String,
    /// The words of the process that tried as that user.
    pub said: String,
}

/// Has another user try whether it could read a file in the place of one that it can read; says why not.
pub(crate) async fn try_switched(user: String, old: Option<&Path>, new: &Path) -> Result<(), NotReadable> {
    let switched = Some(Switched { old: old.map(Path::to_owned), new: new.into() });
    let tried = Trial { user: Some(user.clone()), switched, ..Trial::default() }.run(&own()).await;
    tried.map_err(|said| NotReadable { user, said })
}

fn find_user(name: &str) -> Result<User, LaunchError> {
    let user = User::from_name(name).map_err(failed("look up the user"))?;
    let user = user.ok_or_else(|| LaunchError::NoUser(name.into()))?;
    if Uid::effective().is_root() || user.uid == Uid::effective() {
        Ok(user)
    } else {
        Err(LaunchError::NotRoot(name.into()))
    }
}

fn is_other(user: &User) -> bool {
    user.uid != Uid::effective()
}

/// Signals that whoever started the agent ignored or blocked would stay so in the node, and one that ignores SIGTERM
/// cannot be stopped. A handler, unlike an ignored signal, does not survive the exec: so each gets one.
fn default_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _context = runtime.enter();
    for kind in [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::terminate(),
        SignalKind::child(),
    ] {
        let _ = signal(kind)?;
    }
    Ok(SigSet::empty().thread_set_mask()?)
}

fn redirect(nothing: &File, log: &File) -> rustix::io::Result<()> {
    stdio::dup2_stdin(nothing)?;
    stdio::dup2_stdout(log)?;
    stdio::dup2_stderr(log)
}

/// Groups first: once the user has changed, there is no right to change them.
fn become_user(user: Option<&User>) -> Result<(), LaunchError> {
    let Some(user) = user.filter(|user| is_other(user)) else { return Ok(()) };
    let name = CString::new(user.name.as_str()).map_err(failed("pass on the user's name"))?;
    nix::unistd::initgroups(&name, user.gid).map_err(failed("take the user's groups"))?;
    nix::unistd::setgid(user.gid).map_err(failed("take the user's group"))?;
    nix::unistd::setuid(user.uid).map_err(failed("become the user"))
}

fn prepared(command: &NodeCommand, program: &Path, user: Option<&User>) -> Command {
    let mut prepared = Command::new(program);
    prepared.args(command.argv.iter().skip(1)).env_clear().env("PATH", PATH);
    if let Some(user) = user {
        prepared.env("HOME", &user.dir).env("USER", &user.name).env("LOGNAME", &user.name);
    }
    prepared.envs(&command.env).current_dir(command.cwd.as_deref().unwrap_or(Path::new("/")));
    prepared
}

/// An agent that is gone is not told.
fn answer(agent: &mut File, answer: &Answer) {
    if let Ok(mut line) = serde_json::to_vec(answer) {
        line.push(b'\n');
        let _ = agent.write_all(&line);
    }
}

//! Which process: by boot, pid and start time, so that a recycled pid is never taken for it.
//!
//! A pid alone names whoever has it now. The start time, in clock ticks since boot, tells two holders of one
//! pid apart, the boot id two boots (proc_pid_stat(5), field 22). Signals go through a pidfd (pidfd_open(2)),
//! which keeps naming the one process it was opened for.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{self, Read},
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};

pub use crate::keys::ProcessId;
use crate::keys::host_id::hex_32;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

impl ProcessId {
    pub fn own() -> io::Result<Self> {
        Self::of(std::process::id())?.ok_or_else(|| io::Error::other("/proc does not show this process"))
    }

    /// The process that has this pid now; `None` when nobody has it, or only what is left of one that ended.
    pub fn of(pid: u32) -> io::Result<Option<Self>> {
        match fs::read(format!("/proc/{pid}/stat")) {
            Ok(stat) => {
                // A process may have any bytes for a name.
                let stat = parse_stat(&String::from_utf8_lossy(&stat))
                    .ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat is no such")))?;
                Ok(if stat.ended { None } else { Some(Self::here(pid, stat.start_time)?) })
            }
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn here(pid: u32, start_time: u64) -> io::Result<Self> {
        let pid_namespace = fs::metadata("/proc/self/ns/pid")?.ino();
        Ok(Self { boot_id: boot_id()?, pid_namespace, pid, start_time })
    }

    /// Whether it has ended, as far as can be said here: `None` for a process of another boot, or of another namespace of
    /// pids on this machine, and where `/proc` cannot be read.
    pub fn is_over(&self) -> Option<bool> {
        let here = Self::here(self.pid, self.start_time).ok()?;
        if here != *self {
            return None;
        }
        self.is_alive().ok().map(|is_alive| !is_alive)
    }

    /// Whether a signal such as SIGSTOP holds it (proc_pid_stat(5), state T).
    pub fn is_stopped(&self) -> bool {
        let stat = fs::read(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat).into_owned();
        let is_held = stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'));
        is_held && self.is_alive().unwrap_or(false)
    }

    /// Whether it still runs. A zombie does not: it holds no file, port or lock any more.
    pub fn is_alive(&self) -> io::Result<bool> {
        Ok(Self::of(self.pid)? == Some(*self))
    }

    /// The file it executes, as the kernel knows it; `None` when it has ended.
    ///
    /// A file that was deleted meanwhile has ` (deleted)` at its end: it is no longer what its path names.
    pub fn executable(&self) -> io::Result<Option<PathBuf>> {
        match fs::read_link(format!("/proc/{}/exe", self.pid)) {
            // Asked after the link was read: a pid that was recycled in between is not this process.
            Ok(exe) => Ok(self.is_alive()?.then_some(exe)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes hold of it, for signals; `None` when it has ended.
    pub fn open(&self) -> io::Result<Option<ProcessHandle>> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            // The pidfd names whoever had the pid at that moment; from here on it can't change hands, so one look
            // at the start time settles who that is.
            Ok(fd) => Ok(self.is_alive()?.then_some(ProcessHandle(fd))),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// When it started, by the wall clock as it stands now; `None` for another boot's process.
    pub fn started_at(&self) -> Option<SystemTime> {
        let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok()??;
        let boot = fs::read_to_string("/proc/stat").ok()?;
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        let since_boot = self.start_time / u64::try_from(ticks).ok().filter(|ticks| *ticks > 0)?;
        (boot_id().ok()? == self.boot_id)
            .then(|| SystemTime::UNIX_EPOCH + Duration::from_secs(boot) + Duration::from_secs(since_boot))
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}", self.pid)
    }
}

/// A process held by pidfd: a signal reaches it or nobody.
#[derive(Debug)]
pub struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    /// Sends a signal; false when the process has ended.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        match pidfd_send_signal(&self.0, signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether it has ended: all its threads, whether or not its parent has noticed (poll(2) on a pidfd).
    pub fn has_ended(&self) -> io::Result<bool> {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        Ok(retry_on_intr(|| poll(&mut fds, Some(&at_once)))? > 0)
    }

    /// Waits until it has ended, looking every 2 ms: nothing that may be called without `unsafe` wakes a task
    /// when a pidfd is ready.
    pub async fn ended(&self) -> io::Result<()> {
        while !self.has_ended()? {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }
}

pub fn boot_id() -> io::Result<u128> {
    const FILE: &str = "/proc/sys/kernel/random/boot_id";
    let text = fs::read_to_string(FILE)?;
    hex_32(&text.trim().replace('-', "")).ok_or_else(|| io::Error::other(format!("{FILE} holds no boot id")))
}

/// The command line of a process, argument by argument; empty when it has ended or is a kernel's own.
pub(crate) fn command_line(pid: u32) -> io::Result<Vec<String>> {
    let bytes = read_bounded(&format!("/proc/{pid}/cmdline"))?;
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    Ok(bytes.split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect())
}

/// More than a process can be started with, in bytes (execve(2): 6 MiB).
const MOST_TOLD: u64 = 8 << 20;
/// How many processes of a family are known; a member has a supervisor or two above it.
const MOST_RELATED: usize = 64;

/// How long a process may take to tell it: the kernel reads its memory, and so waits for whatever keeps that locked, such as
/// a file system of its user's own (FUSE) that never answers.
const TOLD_WITHIN: Duration = Duration::from_secs(1);
/// How many reads may be left unanswered at a time; each of them keeps a thread.
const MOST_UNANSWERED: usize = 16;
/// Those reads by their files, until they end: a file among them is not asked again.
static UNANSWERED: Mutex<BTreeMap<String, JoinHandle<()>>> = Mutex::new(BTreeMap::new());

/// What a process tells of itself in `/proc`: it may point the kernel at any part of its memory (prctl(2),
/// `PR_SET_MM_MAP`), and so at as much as it has.
///
/// # Errors
/// It cannot be read, or not within [`TOLD_WITHIN`] ([`io::ErrorKind::TimedOut`]).
pub(crate) fn read_bounded(file: &str) -> io::Result<Vec<u8>> {
    let path = file.to_owned();
    bounded(file, move || read_at_most(&path))
}

/// The same of whatever is read of this file in another way.
pub(crate) fn bounded(file: &str, read: impl FnOnce() -> io::Result<Vec<u8>> + Send + 'static) -> io::Result<Vec<u8>> {
    let unanswered = || io::Error::new(io::ErrorKind::TimedOut, format!("{file} does not answer"));
    let mut hanging = UNANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
    hanging.retain(|_, read| !read.is_finished());
    if hanging.contains_key(file) || hanging.len() >= MOST_UNANSWERED {
        return Err(unanswered());
    }
    drop(hanging);
    let (sender, receiver) = mpsc::sync_channel(1);
    let read = thread::Builder::new().spawn(move || {
        // Nobody may wait for it any more.
        let _ = sender.send(read());
    })?;
    receiver.recv_timeout(TOLD_WITHIN).unwrap_or_else(|_| {
        UNANSWERED.lock().unwrap_or_else(PoisonError::into_inner).insert(file.to_owned(), read);
        Err(unanswered())
    })
}

fn read_at_most(file: &str) -> io::Result<Vec<u8>> {
    let mut told = Vec::new();
    fs::File::open(file)?.take(MOST_TOLD).read_to_end(&mut told)?;
    Ok(told)
}

pub(crate) fn all_pids() -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(Path::new("/proc"))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// A process and all that it, or one of its children, has started and that still run; the first [`MOST_RELATED`] of them.
pub(crate) fn family(pid: u32) -> io::Result<Vec<u32>> {
    let parent = |pid: &u32| {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Some((parse_stat(&String::from_utf8_lossy(&stat))?.parent, *pid))
    };
    let parents: Vec<(u32, u32)> = all_pids()?.iter().filter_map(parent).collect();
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(parent) = family.get(at).copied().filter(|_| family.len() < MOST_RELATED) {
        let children = parents.iter().filter(|(of, child)| *of == parent && !family.contains(child));
        let children: Vec<_> = children.map(|(_, child)| *child).collect();
        family.extend(children);
        at += 1;
    }
    family.truncate(MOST_RELATED);
    Ok(family)
}

/// A process that ends while it is read answers either way.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(nix::libc::ESRCH)
}

/// Whether this is the line of that process, which has ended and is not reaped yet.
pub(super) fn is_unreaped(stat: &[u8], process: ProcessId) -> bool {
    let stat = parse_stat(&String::from_utf8_lossy(stat));
    stat.is_some_and(|stat| stat.ended && stat.start_time == process.start_time)
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    start_time: u64,
    ended: bool,
}

/// Reads `/proc/<pid>/stat`. The name in parentheses may itself hold spaces and parentheses.
fn parse_stat(stat: &str) -> Option<Stat> {
    // Fields from the third on, which is the state.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let threads: u32 = fields.get(17)?.parse().ok()?;
    // A main thread may end before the others: then the process is not over.
    let ended = matches!(*fields.first()?, "X" | "x") || (*fields.first()? == "Z" && threads <= 1);
    Some(Stat { parent: fields.get(1)?.parse().ok()?, start_time: fields.get(19)?.parse().ok()?, ended })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn a_process_that_a_signal_holds_is_seen() {
        let mut child = sleeper();
        let process = ProcessId::of(child.id()).unwrap().unwrap();
        assert!(!process.is_stopped());
        process.open().unwrap().unwrap().signal(Signal::STOP).unwrap();
        while !process.is_stopped() {
            thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.is_stopped());
    }

    #[test]
    fn a_stat_line_is_read_past_any_name() {
        let rest = "1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 THREADS 0 4242 1 1";
        for (name, state, threads, ended) in [
            ("sleep", "S", "1", false),
            ("a) Z (b", "R", "4", false),
            ("sleep", "Z", "1", true),
            ("main ended first", "Z", "3", false),
            ("sleep", "X", "1", true),
        ] {
            let line = format!("17 ({name}) {state} {}", rest.replace("THREADS", threads));
            assert_eq!(parse_stat(&line), Some(Stat { parent: 1, start_time: 4242, ended }), "{line}");
        }
        assert_eq!(parse_stat("17 (cut"), None);
        assert_eq!(parse_stat("17 (cut) S 1 2"), None);
    }

    /// A named pipe that nobody writes to stands for it: its open waits as the read of such a process does.
    #[test]
    fn what_never_answers_is_given_up_and_not_asked_again_until_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("cmdline");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let file = pipe.display().to_string();
        let threads = || fs::read_dir("/proc/self/task").unwrap().count();
        for _ in 0..200 {
            assert_eq!(read_bounded(&file).unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
        assert!(threads() < 200, "one read is left, not each");
        assert!(UNANSWERED.lock().unwrap().contains_key(&file));
        // Its end is seen.
        fs::write(&pipe, "told").unwrap();
        let is_over = || UNANSWERED.lock().unwrap().get(&file).is_none_or(JoinHandle::is_finished);
        while !is_over() {
            std::thread::sleep(Duration::from_millis(1));
        }
        fs::remove_file(&pipe).unwrap();
        fs::write(&pipe, "told").unwrap();
        assert_eq!(read_bounded(&file).unwrap(), b"told");
    }

    #[test]
    fn a_family_is_a_process_and_its_descendants() {
        let mut shell =
            Command::new("sh").args(["-c", "sleep 600 & echo; wait"]).stdout(Stdio::piped()).spawn().unwrap();
        shell.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let own = family(std::process::id()).unwrap();
        let family = family(shell.id()).unwrap();
        family
            .iter()
            .for_each(|pid| drop(ProcessId::of(*pid).unwrap().unwrap().open().unwrap().unwrap().signal(Signal::KILL)));
        shell.wait().unwrap();
        assert_eq!((family.len(), family[0]), (2, shell.id()));
        assert!(family.iter().all(|pid| own.contains(pid)));
    }

    #[test]
    fn a_process_is_found_whatever_its_name() {
        let mut child = Command::new("python3").args(["-c", RENAMED]).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = [0; 5];
        child.stdout.take().unwrap().read_exact(&mut said).unwrap();
        let found = ProcessId::of(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.unwrap().is_some());
    }

    /// A name of bytes that are no text, with what looks like the rest of the line.
    const RENAMED: &str = r#"
import os, time
open("/proc/self/comm", "wb").write(b"\xff) Z 1\n(")
os.write(1, b"named")
time.sleep(600)
"#;

    #[tokio::test]
    async fn a_process_is_known_until_it_ends_even_unreaped() {
        let mut child = sleeper();
        let identity = ProcessId::of(child.id()).unwrap().unwrap();
        assert!(identity.is_alive().unwrap());
        assert!(identity.started_at().unwrap() <= SystemTime::now());
        let handle = identity.open().unwrap().unwrap();
        assert!(handle.signal(Signal::TERM).unwrap());
        handle.ended().await.unwrap();
        assert!(!identity.is_alive().unwrap(), "a zombie counts as ended");
        assert_eq!(identity.executable().unwrap(), None);
        child.wait().unwrap();
        assert!(!handle.signal(Signal::TERM).unwrap());
        assert_eq!(ProcessId::of(identity.pid).unwrap(), None);
    }

    #[test]
    fn a_recycled_pid_is_somebody_else() {
        let mut child = sleeper();
        let holder = ProcessId::of(child.id()).unwrap().unwrap();
        for other in [
            ProcessId { start_time: holder.start_time - 1, ..holder },
            ProcessId { boot_id: !holder.boot_id, ..holder },
        ] {
            assert!(!other.is_alive().unwrap());
            assert!(other.open().unwrap().is_none(), "no signal could reach the holder");
            assert_eq!(other.executable().unwrap(), None);
        }
        assert_eq!(holder.is_over(), Some(false));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(holder.is_over(), Some(true));
    }

    /// Two containers on one machine have one boot and pids of their own.
    #[test]
    fn of_another_boot_or_namespace_nothing_is_known() {
        let own = ProcessId::own().unwrap();
        for other in
            [ProcessId { boot_id: !own.boot_id, ..own }, ProcessId { pid_namespace: own.pid_namespace + 1, ..own }]
        {
            assert_eq!(other.is_over(), None, "{other:?}");
        }
        assert_eq!(ProcessId { start_time: own.start_time + 1, ..own }.is_over(), Some(true));
    }

    #[test]
    fn an_identity_is_read_back_from_its_text() {
        let identity = ProcessId { boot_id: u128::MAX - 1, pid_namespace: 7, pid: 1, start_time: u64::MAX };
        let text = serde_json::to_string(&identity).unwrap();
        assert_eq!(serde_json::from_str::<ProcessId>(&text).unwrap(), identity);
        assert!(serde_json::from_str::<ProcessId>(r#"{"boot_id":"7","pid":1,"start_time":1}"#).is_err());
    }
}

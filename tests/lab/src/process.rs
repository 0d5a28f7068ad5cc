//! Real processes: started in a session of their own, found again by their executable, signalled through
//! a pidfd, so that a number that was given out again is never hit.

use std::{
    ffi::OsStr,
    fmt, fs, io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use crate::{Error, wait};

/// One running process; or one that ran, for the pidfd then only says that it is gone.
pub struct Process {
    /// Its number, for messages.
    pub pid: i32,
    fd: OwnedFd,
}

/// Copies a program that is to be started, in a process of its own: a file that this one has open for writing when another
/// thread starts something cannot be executed until that has begun (`ETXTBSY`).
///
/// # Errors
/// It is not copied.
pub fn copy_program(from: &Path, to: &Path) -> Result<(), Error> {
    let done = Command::new("cp").arg("--").args([from, to]).status()?;
    if done.success() { Ok(()) } else { Err(format!("cp {} {}: {done}", from.display(), to.display()).into()) }
}

impl Process {
    /// Starts a program that outlives us: own session, no input, its output appended to `log`.
    ///
    /// # Errors
    /// It cannot be started or its log not opened.
    pub fn start<A: AsRef<OsStr>>(argv: &[A], log: &Path) -> Result<Self, Error> {
        let [program, ..] = argv else { return Err("an empty command line".into()) };
        let output = fs::File::options().create(true).append(true).open(log)?;
        // `setsid` makes the session and then becomes the program, under one pid.
        let mut child = Command::new("setsid")
            .args(argv)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.as_ref().display()))?;
        let process = Self::open(child.id() as i32)?;
        // A child that ended stays in the process table until its parent has looked.
        std::thread::spawn(move || child.wait());
        Ok(process)
    }

    /// The process with this number.
    ///
    /// # Errors
    /// There is none.
    pub fn open(pid: i32) -> io::Result<Self> {
        let number = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { pid, fd: pidfd_open(number, PidfdFlags::empty())? })
    }

    /// Every process whose executable lies in this folder, whoever started it.
    pub fn under(folder: &Path) -> Vec<Self> {
        let Ok(folder) = folder.canonicalize() else { return Vec::new() };
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let runs_here = |pid| executable(pid).is_some_and(|path| path.starts_with(&folder));
        // Asked again once the pidfd holds it: the number may have been given out again in between.
        pids.filter(|pid| runs_here(*pid))
            .filter_map(|pid| Self::open(pid).ok())
            .filter(|process| runs_here(process.pid))
            .collect()
    }

    /// The file it runs; `None` when it is gone or a zombie.
    pub fn executable(&self) -> Option<PathBuf> {
        executable(self.pid)
    }

    /// Whether it still runs: a zombie does not, a stopped process does.
    pub fn is_alive(&self) -> bool {
        // Signal 0 is not offered for a pidfd. Its end makes it readable.
        let (mut ended, at_once) = ([PollFd::new(&self.fd, PollFlags::IN)], Timespec { tv_sec: 0, tv_nsec: 0 });
        // A signal, as that of a child's end, interrupts it even though it waits for nothing (poll(2)).
        matches!(retry_on_intr(|| poll(&mut ended, Some(&at_once))), Ok(0))
    }

    /// The state letter of `/proc/<pid>/stat`; `None` when it is gone.
    pub fn state(&self) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }

    /// Sends a signal; to a process that is gone it is nothing.
    ///
    /// # Errors
    /// The signal may not be sent.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(self.fd.as_fd(), signal) {
            Err(rustix::io::Errno::SRCH) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until it is gone.
    ///
    /// # Errors
    /// It is still there after the deadline.
    pub fn ended(&self, deadline: Duration) -> Result<(), wait::TimedOut> {
        wait::until_blocking(&format!("the end of process {}", self.pid), deadline, || match self.is_alive() {
            true => Err("it runs".into()),
            false => Ok(()),
        })
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)
    }
}

fn executable(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// Ends every process whose executable lies in this folder, at once and for good.
pub fn kill_all_under(folder: &Path) {
    // One may have been about to start another; and one that does not end is not waited for in vain again and again.
    for _ in 0..3 {
        let found = Process::under(folder);
        for process in &found {
            let _ = process.signal(Signal::KILL);
            let _ = process.ended(wait::GENEROUS);
        }
        if found.is_empty() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(home: &Path) -> Process {
        let copy = home.join("sleeper");
        copy_program(Path::new("/bin/sleep"), &copy).expect("a copy");
        Process::start(&[copy.as_os_str(), OsStr::new("1000")], &home.join("log")).expect("started")
    }

    #[test]
    fn a_process_is_found_by_its_executable_and_ends_when_killed() {
        let home = tempfile::tempdir().expect("a folder");
        let started = sleeper(home.path());
        let found = wait::until_blocking("the program to be found", wait::GENEROUS, || {
            Process::under(home.path()).pop().ok_or("nobody runs it".into())
        })
        .expect("found");
        assert_eq!(found.pid, started.pid);
        assert!(found.is_alive());
        kill_all_under(home.path());
        assert!(!found.is_alive() && Process::under(home.path()).is_empty());
        started.signal(Signal::KILL).expect("a signal to a process that is gone is nothing");
    }

    /// The sixth field of `/proc/PID/stat`, counted from the name's closing bracket (proc_pid_stat(5)).
    fn session(pid: i32) -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(3)?.parse().ok()
    }

    #[test]
    fn a_process_is_in_a_session_of_its_own() {
        let home = tempfile::tempdir().expect("a folder");
        let started = sleeper(home.path());
        let session = wait::until_blocking("its session", wait::GENEROUS, || {
            // By /proc: where the first session is another pid namespace's its number is 0, no pid to most libraries.
            match session(started.pid) {
                Some(leader) if leader == started.pid => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
        kill_all_under(home.path());
        session.expect("it leads one");
    }
}

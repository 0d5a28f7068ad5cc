//! Faults of a process: frozen and thawed, or ended at a chosen write to disk.
//!
//! The shipped binary is ended from outside: strace counts its calls, so the product has no switch for it.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Signal;

use crate::{Error, process::Process, wait};

/// The end of a process at one of its syncs of one file.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The file whose syncs are counted.
    pub file: PathBuf,
    pub call: Call,
    /// At which of them, from 1. With fewer of them the process runs to its own end.
    pub nth: usize,
    pub moment: Moment,
    /// Where strace writes what it saw; made anew.
    pub trace: PathBuf,
}

/// How a file is synced; each kind is counted for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `fdatasync(2)`, `File::sync_data`.
    Fdatasync,
    /// `fsync(2)`, `File::sync_all`.
    Fsync,
}

impl Call {
    fn name(self) -> &'static str {
        match self {
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
        }
    }
}

/// On which side of a sync a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The record is written but not synced.
    Before,
    /// The record is synced, and the process has not learnt it.
    After,
}

impl Cut {
    /// The command line that runs `argv` and cuts it. What `argv` starts in its turn is left alone.
    pub fn wrap<A: AsRef<OsStr>>(&self, argv: &[A]) -> Vec<OsString> {
        // A fatal signal on the way into a call keeps it from happening; a stop works on the way out.
        let signal = match self.moment {
            Moment::Before => "KILL",
            Moment::After => "STOP",
        };
        let call = self.call.name();
        let inject = format!("inject={call}:signal={signal}:when={}", self.nth);
        under_strace(&self.trace, Some(&self.file), call, &inject, argv)
    }

    /// Waits for the end of the process that [`Cut::wrap`] started; `false` when it never came to be cut.
    ///
    /// # Errors
    /// It neither ends nor is stopped within the deadline; or several of its threads sync the file, which
    /// strace counts one by one.
    pub fn carry_out(&self, process: &Process, deadline: Duration) -> Result<bool, Error> {
        let is_held = self.hold(process, deadline)?;
        if is_held {
            let strace = tracer(process)?;
            process.signal(Signal::KILL)?;
            // Not until it says so: it says that the process stands still before it lets it be, and where the signal comes
            // in between it gives up without another word.
            strace.ended(wait::GENEROUS)?;
        }
        process.ended(wait::GENEROUS)?;
        let threads: BTreeSet<_> = self
            .traced()
            .into_iter()
            .filter(|(_, said)| said.starts_with(self.call.name()))
            .map(|(thread, _)| thread)
            .collect();
        match threads.len() {
            0 | 1 => Ok(is_held || self.says(process, "+++ killed by SIGKILL")),
            several => Err(format!("{several} threads sync {}, so that no count is right", self.file.display()).into()),
        }
    }

    /// Whether the trace says this of the process itself, its first thread.
    fn says(&self, process: &Process, what: &str) -> bool {
        self.traced().iter().any(|(thread, said)| *thread == process.pid && said.starts_with(what))
    }

    /// The trace's lines: a thread, padded, and what it did or suffered.
    fn traced(&self) -> Vec<(i32, String)> {
        let trace = fs::read_to_string(&self.trace).unwrap_or_default();
        let line = |line: &str| {
            let (thread, said) = line.split_once(' ')?;
            Some((thread.parse().ok()?, said.trim_start().to_owned()))
        };
        trace.lines().filter_map(line).collect()
    }

    /// Waits until the process stands still right after its fsync ([`Moment::After`]), and leaves it so;
    /// `false` when it ended instead.
    ///
    /// # Errors
    /// It neither ends nor is stopped within the deadline.
    pub fn hold(&self, process: &Process, deadline: Duration) -> Result<bool, Error> {
        let what = "the process to be cut or to end";
        Ok(wait::until_blocking(what, deadline, || match () {
            () if self.says(process, "+++ ") => Ok(false),
            () if self.says(process, "--- stopped by SIGSTOP") => Ok(true),
            () => Err(format!("{process:?} runs")),
        })?)
    }
}

/// A file that cannot be written to from some call on, as on a full disk.
#[derive(Clone, Debug)]
pub struct Unwritable {
    pub file: PathBuf,
    /// Which `write(2)` to it fails first, from 1; so do all after it, with "no space left on device".
    pub from: usize,
    /// Where strace writes what it saw; made anew.
    pub trace: PathBuf,
}

impl Unwritable {
    /// The command line that runs `argv` so that its writes fail. What `argv` starts in its turn is left alone.
    pub fn wrap<A: AsRef<OsStr>>(&self, argv: &[A]) -> Vec<OsString> {
        let inject = format!("inject=write:error=ENOSPC:when={}+", self.from);
        under_strace(&self.trace, Some(&self.file), "write", &inject, argv)
    }
}

/// The instant before a process signals another: it has decided, and the kernel has not yet been told.
#[derive(Clone, Debug)]
pub struct Brink {
    /// Where strace writes what it saw; made anew.
    pub trace: PathBuf,
}

impl Brink {
    const DELAY: &str = "inject=pidfd_send_signal:delay_enter=3600000000:when=1";
    /// `pidfd_send_signal(2)`, which has one number on all machines.
    const CALL: &str = "424 ";

    /// The command line that runs `argv` and holds the one thread that is about to send a signal.
    pub fn wrap<A: AsRef<OsStr>>(&self, argv: &[A]) -> Vec<OsString> {
        under_strace(&self.trace, None, "pidfd_send_signal", Self::DELAY, argv)
    }

    /// Waits until the process that [`Brink::wrap`] started stands there, and freezes all of it.
    ///
    /// # Errors
    /// It does not come there, or does not stop.
    pub fn freeze(&self, process: &Process, deadline: Duration) -> Result<(), Error> {
        let tasks = PathBuf::from(format!("/proc/{}/task", process.pid));
        wait::until_blocking("the process to be about to signal", deadline, || {
            let tasks = fs::read_dir(&tasks).map_err(|error| error.to_string())?;
            let calls = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("syscall")).ok());
            calls.filter(|call| call.starts_with(Self::CALL)).map(drop).next().ok_or_else(|| "it is not".into())
        })?;
        freeze(process)
    }

    /// Lets it go on, from that very instant. strace, which holds the thread, is done with.
    ///
    /// # Errors
    /// A signal may not be sent.
    pub fn thaw(&self, process: &Process) -> Result<(), Error> {
        tracer(process)?.signal(Signal::KILL)?;
        thaw(process)
    }
}

/// The command line that runs `argv` under strace, which injects this into one call, on one file if only there.
fn under_strace<A: AsRef<OsStr>>(
    trace: &Path,
    file: Option<&PathBuf>,
    call: &str,
    inject: &str,
    argv: &[A],
) -> Vec<OsString> {
    // -D: the process is whom we start, strace stands aside. -b: its children are not traced.
    let mut wrapped: Vec<OsString> = ["strace", "-D", "-f", "-q", "-b", "execve", "-o"].map(OsString::from).into();
    wrapped.push(trace.into());
    wrapped.extend(file.iter().flat_map(|file| ["-P".into(), (*file).into()]));
    wrapped.extend(["-e".into(), format!("trace={call}").into(), "-e".into(), inject.into(), "--".into()]);
    wrapped.extend(argv.iter().map(OsString::from));
    wrapped
}

/// The strace that holds this process.
fn tracer(process: &Process) -> Result<Process, Error> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid))?;
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).unwrap_or_default();
    Ok(Process::open(tracer.trim().parse()?)?)
}

/// Freezes a process where it is, and returns when it stands still.
///
/// # Errors
/// It does not stop.
pub fn freeze(process: &Process) -> Result<(), Error> {
    process.signal(Signal::STOP)?;
    let what = format!("process {} to stand still", process.pid);
    Ok(wait::until_blocking(&what, wait::GENEROUS, || match process.state() {
        Some('T' | 't') => Ok(()),
        other => Err(format!("it is in state {other:?}")),
    })?)
}

/// Lets a frozen process go on.
///
/// # Errors
/// The signal may not be sent.
pub fn thaw(process: &Process) -> Result<(), Error> {
    Ok(process.signal(Signal::CONT)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three times: appends a line, syncs it, and notes in another file that it is on disk. Its child
    /// syncs the file once before all that, and is not counted.
    const WRITER: &str = "import os, subprocess, sys\n\
        with open(sys.argv[1], 'ab', 0) as f, open(sys.argv[2], 'ab', 0) as known:\n\
        \x20subprocess.run(['sync', sys.argv[1]], check=True)\n\
        \x20for i in range(3):\n\
        \x20 f.write(b'line\\n'); os.fdatasync(f.fileno()); known.write(b'line\\n')\n";

    /// Whether the writer was cut, lines written, and lines it knew to be on disk.
    fn cut(nth: usize, moment: Moment) -> (bool, usize, usize) {
        let home = tempfile::tempdir().expect("a folder");
        let [file, known, trace] = ["journal", "known", "trace"].map(|name| home.path().join(name));
        [&file, &known].into_iter().for_each(|path| fs::write(path, "").expect("written"));
        let cut = Cut { file: file.clone(), call: Call::Fdatasync, nth, moment, trace };
        let argv = ["/usr/bin/python3".as_ref(), "-c".as_ref(), WRITER.as_ref(), file.as_os_str(), known.as_ref()];
        let process = Process::start(&cut.wrap(&argv), &home.path().join("log")).expect("started");
        let was_cut = cut.carry_out(&process, wait::GENEROUS).expect("cut or ended");
        let count = |path| fs::read_to_string(path).expect("readable").lines().count();
        (was_cut, count(&file), count(&known))
    }

    #[test]
    fn a_process_ends_just_before_or_just_after_its_nth_fsync() {
        for (nth, moment, expected) in [
            (1, Moment::Before, (true, 1, 0)),
            (3, Moment::Before, (true, 3, 2)),
            (4, Moment::Before, (false, 3, 3)),
            (1, Moment::After, (true, 1, 0)),
            (3, Moment::After, (true, 3, 2)),
            (4, Moment::After, (false, 3, 3)),
        ] {
            assert_eq!(cut(nth, moment), expected, "fsync {nth}, {moment:?}");
        }
    }

    #[test]
    fn syncs_from_several_threads_are_an_error_not_a_wrong_count() {
        let home = tempfile::tempdir().expect("a folder");
        let [file, trace] = ["journal", "trace"].map(|name| home.path().join(name));
        let cut = Cut { file: file.clone(), call: Call::Fsync, nth: 2, moment: Moment::Before, trace };
        let threads = "import os, sys, threading\n\
            f = open(sys.argv[1], 'wb', 0)\n\
            for i in range(3): t = threading.Thread(target=os.fsync, args=[f]); t.start(); t.join()\n";
        let argv = ["/usr/bin/python3".as_ref(), "-c".as_ref(), threads.as_ref(), file.as_os_str()];
        let process = Process::start(&cut.wrap(&argv), &home.path().join("log")).expect("started");
        let error = cut.carry_out(&process, wait::GENEROUS).expect_err("three threads");
        assert!(error.to_string().starts_with("3 threads sync"), "{error}");
    }

    #[test]
    fn a_frozen_process_stands_still_until_it_is_thawed() {
        let home = tempfile::tempdir().expect("a folder");
        let process = Process::start(&["sleep", "1000"], &home.path().join("log")).expect("started");
        freeze(&process).expect("frozen");
        assert!(process.is_alive());
        thaw(&process).expect("thawed");
        wait::until_blocking("it to run", wait::GENEROUS, || match process.state() {
            Some('T' | 't') => Err("still frozen".into()),
            _ => Ok(()),
        })
        .expect("runs");
        process.signal(Signal::KILL).expect("killed");
        process.ended(wait::GENEROUS).expect("gone");
    }
}

//! Faults of a process: frozen and thawed, or ended at a chosen write to disk.
//!
//! The shipped binary is ended from outside: strace counts its calls, so the product has no switch for it.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::PathBuf,
    time::Duration,
};

use rustix::process::Signal;

use crate::{Error, process::Process, wait};

/// The end of a process at one of its fsyncs of one file.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The file whose fsyncs are counted.
    pub file: PathBuf,
    /// At which of them, from 1. With fewer of them the process runs to its own end.
    pub nth: usize,
    /// On which side of it.
    pub moment: Moment,
    /// Where strace writes what it saw; made anew.
    pub trace: PathBuf,
}

/// On which side of an fsync a process ends.
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
        let calls = "fsync,fdatasync";
        let inject = format!("inject={calls}:signal={signal}:when={}", self.nth);
        // -D: the process is whom we start, strace stands aside. -b: its children are not traced.
        let mut wrapped: Vec<OsString> = ["strace", "-D", "-f", "-q", "-b", "execve", "-o"].map(OsString::from).into();
        wrapped.extend([self.trace.as_os_str().into(), "-P".into(), self.file.as_os_str().into()]);
        wrapped.extend(["-e".into(), format!("trace={calls}").into(), "-e".into(), inject.into(), "--".into()]);
        wrapped.extend(argv.iter().map(OsString::from));
        wrapped
    }

    /// Waits for the end of the process that [`Cut::wrap`] started; `false` when it never came to be cut.
    ///
    /// # Errors
    /// It neither ends nor is stopped within the deadline.
    pub fn carry_out(&self, process: &Process, deadline: Duration) -> Result<bool, Error> {
        if self.hold(process, deadline)? {
            process.signal(Signal::KILL)?;
        }
        process.ended(wait::GENEROUS)?;
        wait::until_blocking("strace to have seen the end", wait::GENEROUS, || {
            let trace = fs::read_to_string(&self.trace).map_err(|error| error.to_string())?;
            let end = said_of(process, &trace).find(|said| said.starts_with("+++ ")).ok_or("not yet")?;
            Ok(end.contains("killed by SIGKILL"))
        })
        .map_err(Error::from)
    }

    /// Waits until the process stands still right after its fsync ([`Moment::After`]), and leaves it so;
    /// `false` when it ended instead.
    ///
    /// # Errors
    /// It neither ends nor is stopped within the deadline.
    pub fn hold(&self, process: &Process, deadline: Duration) -> Result<bool, Error> {
        let what = "the process to be cut or to end";
        Ok(wait::until_blocking(what, deadline, || {
            let trace = fs::read_to_string(&self.trace).unwrap_or_default();
            let says = |beginning| said_of(process, &trace).any(|said| said.starts_with(beginning));
            match () {
                () if says("+++ ") => Ok(false),
                () if says("--- stopped by SIGSTOP") => Ok(true),
                () => Err(trace.lines().last().unwrap_or("nothing traced yet").into()),
            }
        })?)
    }
}

/// What strace wrote of the process itself, its other threads left out. Pids are padded to a column.
fn said_of<'a>(process: &Process, trace: &'a str) -> impl Iterator<Item = &'a str> {
    let pid = process.pid.to_string();
    let lines = trace.lines().filter_map(|line| line.split_once(' '));
    lines.filter(move |(of, _)| *of == pid).map(|(_, said)| said.trim_start())
}

/// The instant before a process signals another: it has decided, and the kernel has not yet been told.
#[derive(Clone, Debug)]
pub struct Brink {
    /// Where strace writes what it saw; made anew.
    pub trace: PathBuf,
}

impl Brink {
    /// Longer than any test.
    const DELAY: &str = "inject=pidfd_send_signal:delay_enter=3600000000:when=1";
    /// `pidfd_send_signal(2)`, which has one number on all machines.
    const CALL: &str = "424 ";

    /// The command line that runs `argv` and holds the one thread that is about to send a signal.
    pub fn wrap<A: AsRef<OsStr>>(&self, argv: &[A]) -> Vec<OsString> {
        let mut wrapped: Vec<OsString> = ["strace", "-D", "-f", "-q", "-b", "execve", "-o"].map(OsString::from).into();
        wrapped.extend([self.trace.as_os_str().into(), "-e".into(), "trace=pidfd_send_signal".into()]);
        wrapped.extend(["-e".into(), Self::DELAY.into(), "--".into()]);
        wrapped.extend(argv.iter().map(OsString::from));
        wrapped
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
        let status = fs::read_to_string(format!("/proc/{}/status", process.pid))?;
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).unwrap_or_default();
        Process::open(tracer.trim().parse()?)?.signal(Signal::KILL)?;
        thaw(process)
    }
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
        let cut = Cut { file: file.clone(), nth, moment, trace };
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

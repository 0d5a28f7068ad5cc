//! What goes wrong where a process that runs syncs its files: it is killed at one of them, or each takes longer.
//!
//! strace holds every thread of it meanwhile, so all else that it does takes longer, too.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    Error,
    process::Process,
    wait::{self, GENEROUS},
};

/// Both kinds: etcd's log is synced by `fdatasync(2)`, a snapshot by `fsync(2)`.
const CALLS: &str = "fdatasync,fsync";

/// A process whose syncs are held by strace.
#[derive(Debug)]
pub struct Syncs {
    strace: Process,
}

impl Syncs {
    /// Kills a process as one of its threads is about to sync for the `nth` time from now on, from 1.
    ///
    /// # Errors
    /// There is no strace, or it may not trace.
    pub fn killed_at(process: &Process, nth: usize, trace: &Path) -> Result<Self, Error> {
        Self::traced(process, &format!("signal=KILL:when={nth}"), trace)
    }

    /// Lets every sync of a process take so much longer.
    ///
    /// # Errors
    /// There is no strace, or it may not trace.
    pub fn slow(process: &Process, by: Duration, trace: &Path) -> Result<Self, Error> {
        Self::traced(process, &format!("delay_enter={}", by.as_micros()), trace)
    }

    /// Returns when strace has all threads; `trace` is where it writes.
    fn traced(process: &Process, what: &str, trace: &Path) -> Result<Self, Error> {
        let mut child = Command::new("strace")
            .args(["-f", "-q", "-p", &process.pid.to_string(), "-o"])
            .arg(trace)
            .args(["-e", &format!("trace={CALLS}"), "-e", &format!("inject={CALLS}:{what}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(trace.with_extension("said"))?)
            .spawn()
            .map_err(|error| format!("strace cannot be run: {error}"))?;
        let strace = Process::open(child.id() as i32)?;
        // A child that ended stays in the process table until its parent has looked.
        std::thread::spawn(move || child.wait());
        let all = wait::until_blocking("strace to hold every thread", GENEROUS, || match () {
            () if has_all(process.pid, strace.pid) => Ok(Ok(())),
            () if !strace.is_alive() => Ok(Err(fs::read_to_string(trace.with_extension("said")).unwrap_or_default())),
            () => Err("it does not yet".into()),
        })?;
        // One that was killed while the last thread was taken is what was asked for.
        match all {
            Err(said) if process.is_alive() => Err(format!("strace may not trace: {}", said.trim()).into()),
            _ => Ok(Self { strace }),
        }
    }

    /// Waits until the process is dead; `false` where it did not sync so often by then, and goes on.
    ///
    /// # Errors
    /// strace does not let it be.
    pub fn has_killed(self, process: &Process, deadline: Duration) -> Result<bool, Error> {
        let is_dead = process.ended(deadline).is_ok();
        self.end()?;
        Ok(is_dead || !process.is_alive())
    }

    /// Lets the process be, if it is still there.
    ///
    /// # Errors
    /// strace does not end.
    pub fn end(self) -> Result<(), Error> {
        // One that has ended already, with what it held, is what is wanted.
        let _ = self.strace.signal(Signal::TERM);
        Ok(self.strace.ended(GENEROUS)?)
    }
}

/// Whether this tracer has every thread of a process.
fn has_all(pid: i32, tracer: i32) -> bool {
    let held = format!("TracerPid:\t{tracer}");
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let is_held = |status: String| status.lines().any(|line| line == held);
    threads.flatten().all(|thread| fs::read_to_string(thread.path().join("status")).is_ok_and(is_held))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts its syncs in the file that it syncs.
    const SYNCS: &str = "import os, sys
f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for n in range(1, 1 << 30):
    os.pwrite(f, b'%d' % n, 0)
    os.fdatasync(f)";

    fn started(dir: &Path) -> Process {
        let file = dir.join("file");
        let argv = ["python3", "-c", SYNCS, &file.to_string_lossy()];
        let process = Process::start(&argv, &dir.join("log")).expect("started");
        let counts = || if count(dir) > 0 { Ok(()) } else { Err("it does not count".into()) };
        wait::until_blocking("the first sync", GENEROUS, counts).expect("it syncs");
        process
    }

    fn count(dir: &Path) -> u64 {
        fs::read_to_string(dir.join("file")).ok().and_then(|text| text.trim_end_matches('\0').parse().ok()).unwrap_or(0)
    }

    fn is_possible() -> bool {
        let tried = Command::new("strace").args(["-q", "-o", "/dev/null", "true"]).status();
        let is_possible = tried.is_ok_and(|status| status.success());
        if !is_possible {
            eprintln!("skipped: strace is not there, or may not trace");
        }
        is_possible
    }

    #[test]
    fn a_process_is_killed_at_a_sync_or_goes_on() {
        if !is_possible() {
            return;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let process = started(dir.path());
        let never = Syncs::killed_at(&process, 1 << 15, &dir.path().join("never")).expect("traced");
        assert!(!never.has_killed(&process, Duration::ZERO).expect("it is let go"), "it synced so often at once");
        let before = count(dir.path());
        let on_and_on = || if count(dir.path()) > before { Ok(()) } else { Err("it stands still".into()) };
        wait::until_blocking("it to go on", GENEROUS, on_and_on).expect("it goes on");
        let third = Syncs::killed_at(&process, 3, &dir.path().join("third")).expect("traced");
        assert!(third.has_killed(&process, GENEROUS).expect("strace has ended"), "it was not killed");
        let trace = fs::read_to_string(dir.path().join("third")).expect("a trace");
        assert_eq!(trace.lines().filter(|line| line.contains("fdatasync(")).count(), 3, "{trace}");
    }

    #[test]
    fn syncs_that_take_longer_are_fewer_until_that_is_over() {
        if !is_possible() {
            return;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let process = started(dir.path());
        // No sync ends before a test that hangs would be noticed.
        let slow = Syncs::slow(&process, Duration::from_secs(1_000), &dir.path().join("slow")).expect("traced");
        let stands = || {
            let first = count(dir.path());
            std::thread::sleep(Duration::from_millis(100));
            if count(dir.path()) == first { Ok(()) } else { Err("it goes on".into()) }
        };
        wait::until_blocking("it to stand still", GENEROUS, stands).expect("it waits for its sync");
        let before = count(dir.path());
        slow.end().expect("strace has ended");
        let on_and_on = || if count(dir.path()) > before + 3 { Ok(()) } else { Err("it stands still".into()) };
        wait::until_blocking("it to go on", GENEROUS, on_and_on).expect("it goes on");
        process.signal(Signal::KILL).expect("killed");
        process.ended(GENEROUS).expect("ended");
    }
}

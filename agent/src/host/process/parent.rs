//! How a process ended that this agent started: only its parent is told.
//!
//! A node is nobody's child (`host/program/launcher.rs`), so init takes it in. While an agent launches one, that is the agent
//! itself; once the agent has ended, it is init again. Of a node that another agent started nothing is known.

use std::{
    fs, io,
    sync::{Mutex, PoisonError},
};

use rustix::process::{Pid, WaitIdOptions, WaitIdStatus, getpid, set_child_subreaper, waitid};

use super::process_id::{ProcessId, is_unreaped};

/// How many there are of [`Adopting`].
static ADOPTING: Mutex<usize> = Mutex::new(0);

/// As long as one lives, processes that lose their parent become this one's children, where they descend from it.
pub(crate) struct Adopting(());

impl Adopting {
    pub(crate) fn begin() -> Self {
        let mut count = ADOPTING.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        // A kernel that refuses leaves only the cause unknown.
        let _ = set_child_subreaper(Some(getpid()));
        Self(())
    }
}

impl Drop for Adopting {
    fn drop(&mut self) {
        let mut count = ADOPTING.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count == 0 {
            let _ = set_child_subreaper(None);
        }
    }
}

/// How it ended, once; `None` where it has not, or where this process is not its parent.
pub(crate) fn ending(process: ProcessId) -> Option<String> {
    // Another child may have the pid by now, and whoever waits for that would wait in vain.
    let stat = fs::read(format!("/proc/{}/stat", process.pid)).ok()?;
    match is_unreaped(&stat, process) {
        true => reaped(process.pid).ok()?.as_ref().and_then(words),
        false => None,
    }
}

fn reaped(pid: u32) -> io::Result<Option<WaitIdStatus>> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(waitid(rustix::process::WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?)
}

fn words(status: &WaitIdStatus) -> Option<String> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(format!("exit {code}")),
        (None, Some(signal)) => Some(format!("signal {signal}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{process::Command, thread::sleep, time::Duration};

    use super::*;

    #[test]
    fn a_parent_knows_once_how_its_child_ended() {
        for (script, words) in [("read _; exit 3", "exit 3"), ("read _; kill -KILL $$", "signal 9")] {
            let mut command = Command::new("/bin/sh");
            let mut child = command.args(["-c", script]).stdin(std::process::Stdio::piped()).spawn().unwrap();
            let identity = ProcessId::of(child.id()).unwrap().unwrap();
            assert_eq!(ending(identity), None, "it runs");
            drop(child.stdin.take());
            while identity.is_alive().unwrap() {
                sleep(Duration::from_millis(5));
            }
            let other = ProcessId { start_time: identity.start_time + 1, ..identity };
            assert_eq!(ending(other), None, "another had the pid");
            assert_eq!(ending(identity).as_deref(), Some(words));
            assert_eq!(ending(identity), None, "it is gone");
            assert!(child.wait().is_err(), "it was waited for");
        }
        assert_eq!(ending(ProcessId::of(1).unwrap().unwrap()), None);
    }
}

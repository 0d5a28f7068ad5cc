//! A launcher that holds its node's lock and does not go on.
//!
//! Between its change of user and the execution of the node it is that user's process, which may stop it (SIGSTOP) and
//! so keep the node down. It is on file, by pid and start time, before it changes its user (`launch.rs`), so it is known
//! to be a launcher and may be killed: a launcher that ends has started nothing. Before that it is the agent's own user's,
//! and known by its arguments; a name service that hangs may keep it there.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, CWD, StatxFlags, statx},
    process::Signal,
};
use tokio::time::{sleep, timeout};

use crate::host::{
    process::process_id::{ProcessHandle, ProcessId, all_pids, command_line},
    program::launcher,
};

/// How long the kernel is given to stop or to end it.
const LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// A process other than this one that has the lock's file open; `None` where there is none that may be seen.
pub(super) fn holder(lock: &Path) -> Option<u32> {
    let own = std::process::id();
    all_pids().ok()?.into_iter().find(|pid| *pid != own && has_open(*pid, lock))
}

/// A launcher that holds the lock and is not on file yet: a process of the agent's own user that was started as one.
pub(super) fn launcher(lock: &Path) -> Option<ProcessId> {
    let process = ProcessId::of(holder(lock)?).ok()??;
    let is_own = fs::metadata(format!("/proc/{}", process.pid)).ok()?.uid() == rustix::process::geteuid().as_raw();
    let is_launcher = is_own && launcher::is_one(&command_line(process.pid).ok()?);
    (is_launcher && process.is_alive().ok()?).then_some(process)
}

/// Kills this process if it is a launcher that still holds the lock; says whether it did, and it has ended.
///
/// It is stopped first and looked at again: in between it may have become the node, which then goes on.
pub(super) async fn kill(on_file: ProcessId, lock: &Path) -> io::Result<bool> {
    if !has_open(on_file.pid, lock) {
        return Ok(false);
    }
    let Some(handle) = on_file.open()? else { return Ok(false) };
    let held = Held::stop(&handle)?;
    if !(stands_still(on_file.pid).await && has_open(on_file.pid, lock)) {
        return Ok(false);
    }
    handle.signal(Signal::KILL)?;
    drop(held);
    ended(&handle).await
}

/// A process that was stopped to be looked at. It goes on whoever ends the look, by a signal too.
struct Held<'a>(&'a ProcessHandle);

impl<'a> Held<'a> {
    fn stop(handle: &'a ProcessHandle) -> io::Result<Self> {
        handle.signal(Signal::STOP)?;
        Ok(Self(handle))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // One that has ended, or was killed meanwhile, is none the worse for it.
        let _ = self.0.signal(Signal::CONT);
    }
}

async fn ended(handle: &ProcessHandle) -> io::Result<bool> {
    timeout(LIMIT, handle.ended()).await.map_or(Ok(false), |ended| ended.map(|()| true))
}

/// Whether it has stopped in time. One that waits for a disk does not.
async fn stands_still(pid: u32) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().next());
        if matches!(state, Some("T" | "t")) {
            return true;
        }
        sleep(PAUSE).await;
    }
    false
}

/// A node has it no more: it is closed by the execution.
fn has_open(pid: u32, lock: &Path) -> bool {
    let Some(lock) = identity(lock) else { return false };
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.filter_map(|entry| identity(&entry.ok()?.path())).any(|found| found == lock)
}

/// A file's device and inode, as far as the kernel knows them: whose file system never answers is not asked.
fn identity(path: &Path) -> Option<(u32, u32, u64)> {
    let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::INO).ok()?;
    Some((found.stx_dev_major, found.stx_dev_minor, found.stx_ino))
}

//! What the agent and its launcher share: the order to start a node, the answer, and the lock between them.
//!
//! **Why there are no doubles and no lost nodes**, whenever the agent is killed:
//!
//! - The launcher takes the node's lock before it looks whether the node on file runs, and keeps it until it *is* the node:
//!   the lock's descriptor is closed by `execve`, after the process has become the new program. So of two launchers
//!   the second sees the node of the first.
//! - What was started otherwise, and is known by its looks alone (`discovery.rs`), is looked for by the agent before it gives
//!   the order.
//! - Under the lock, and before it becomes the node, the launcher writes its own pid and start time into
//!   `<node>.json`, fsynced. `execve` changes neither, so a node that runs is always on file: there is no instant at
//!   which the one is true and the other is not written. A launcher that dies leaves a file about a dead process. Only where
//!   the disk takes no file is the node started without one, and found by its looks (`discovery.rs`).
//! - Whoever looks takes the lock too, shared, so nobody looks while a launch is half done.
//! - A launcher that comes late (its agent was killed, or gave up on it) finds, under the lock, that the agent of its
//!   order is dead or its deadline over, and starts nothing: whatever a later agent has seen stays true.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};
use serde::{Deserialize, Serialize};

use crate::{
    boot_clock,
    host::{
        files::durable::{self, At, FileError},
        process::process_id::ProcessId,
    },
};

/// A node of the `process` runtime, all templates expanded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCommand {
    /// The node's name in the playbook.
    pub name: String,
    /// Program and arguments; the program is an absolute path, best that of `binary`.
    pub argv: Vec<String>,
    /// Other command lines that this node may be running with, such as those for the release it has now. They only
    /// serve to recognise it when the state directory does not know its process.
    pub also_as: Vec<Vec<String>>,
    /// Its environment. `PATH` has a fixed value unless it is given, and with `user` there are `HOME`, `USER` and
    /// `LOGNAME`; nothing comes from whoever started the agent, so that a node is the same after every start.
    pub env: BTreeMap<String, String>,
    /// Its working folder; `/` when there is none.
    pub cwd: Option<PathBuf>,
    /// The user it runs as; the agent's own when there is none. Another one takes root.
    pub user: Option<String>,
    /// The file that its stdout and stderr are appended to.
    pub log: PathBuf,
    /// The symlink to its executable; executables in its folder and below are this node's.
    pub binary: Option<PathBuf>,
}

/// The order, written to the launcher's stdin.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) command: NodeCommand,
    /// The state directory's folder of nodes.
    pub(crate) nodes: PathBuf,
    /// Who gave the order; void when it is dead.
    pub(crate) agent: ProcessId,
    /// Whether an agent has stopped it: then its log is no reason to leave it down.
    #[serde(default)]
    pub(crate) is_stopped: bool,
    /// Void after this moment, in ms of a clock that counts suspend.
    pub(crate) deadline_ms: u64,
}

/// The answer: JSON lines on the launcher's stdout, which ends when the launcher has become the node or has ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// About to become the node. If this is the last word, it did. What could not be done as it should be is told beside it.
    Starting { identity: ProcessId, exe: PathBuf, warnings: Vec<String> },
    /// The node runs already; nothing was started.
    Running { identity: ProcessId, exe: Option<PathBuf> },
    /// Nothing was started, for this reason.
    Failed { reason: String },
}

/// Milliseconds of CLOCK_BOOTTIME: the same for all processes of a host, and not stopped by suspend.
pub(crate) fn boottime_ms() -> u64 {
    u64::try_from(boot_clock::now().as_millis()).unwrap_or(u64::MAX)
}

/// The file of a node in the folder of nodes. A name is the operator's, so what could leave the folder is escaped.
pub(crate) fn node_file(nodes: &Path, name: &str, extension: &str) -> PathBuf {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let mut file = String::new();
    for byte in name.bytes() {
        if plain(byte) { file.push(char::from(byte)) } else { file.push_str(&format!("%{byte:02x}")) }
    }
    nodes.join(format!("{file}.{extension}"))
}

/// Whether a lock is for looking or for starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockFor {
    Looking,
    Starting,
}

/// The node's lock, until dropped or, for a launcher, until it has become the node.
#[derive(Debug)]
pub(crate) struct NodeLock(#[expect(dead_code, reason = "held, not read")] Flock<File>);

impl NodeLock {
    /// One try; `None` when somebody holds it in a way that excludes this one.
    pub(crate) fn try_take(nodes: &Path, name: &str, purpose: LockFor) -> Result<Option<Self>, FileError> {
        let path = node_file(nodes, name, "lock");
        let kind = match purpose {
            LockFor::Looking => FlockArg::LockSharedNonblock,
            LockFor::Starting => FlockArg::LockExclusiveNonblock,
        };
        let file = durable::open_lock(&path)?;
        match Flock::lock(file, kind) {
            Ok(lock) => Ok(Some(Self(lock))),
            Err((_, Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, error)) => Err(io::Error::from(error)).at("lock", &path),
        }
    }
}

/// How often a lock that is taken is tried again.
pub(crate) const LOCK_RETRY: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_the_folder_or_meets_another() {
        let nodes = Path::new("/state/nodes");
        for (name, file) in [
            ("orders-1", "orders-1.json"),
            ("../../etc/passwd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd.json"),
            ("a b", "a%20b.json"),
            ("a%20b", "a%2520b.json"),
            (".", "%2e.json"),
        ] {
            assert_eq!(node_file(nodes, name, "json"), nodes.join(file));
        }
    }

    #[test]
    fn a_look_and_a_start_exclude_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let take = |purpose| NodeLock::try_take(folder.path(), "a", purpose).unwrap();
        let look = take(LockFor::Looking).unwrap();
        assert!(take(LockFor::Looking).is_some());
        assert!(take(LockFor::Starting).is_none());
        drop(look);
        let start = take(LockFor::Starting).unwrap();
        assert!(take(LockFor::Looking).is_none());
        drop(start);
        assert!(take(LockFor::Starting).is_some());
    }
}

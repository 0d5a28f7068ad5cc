//! The state directory: one agent at a time, and the id this host is known by.

use std::{
    fmt,
    fs::{File, read_to_string},
    io::{self, Read, Write},
    ops::Deref,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};
use serde::{Deserialize, Serialize};

use super::durable::{self, Access, At, FileError};
use crate::{
    calendar::rfc3339,
    host::process::process_id::ProcessId,
    keys::host_id::{HostId, hex_32},
    regular_file,
    words::typed,
};

/// Why the state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    /// A file in it could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another agent works with it.
    #[error("{} is in use by another agent: {holder}", path.display())]
    Locked { path: PathBuf, holder: Holder },
    /// Its host id is no host id.
    #[error(
        "{} holds `{found}`, expected 32 hexadecimal digits; restore it, or let the next run make another: rm {}",
        path.display(), typed(&path.to_string_lossy())
    )]
    BadHostId { path: PathBuf, found: String },
}

/// The agent that holds the lock, as it wrote itself into the lock file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder(pub Option<ProcessId>);

/// The state directory, held by this agent until it is dropped or the process ends, however it ends; nothing in it was
/// read yet.
#[derive(Debug)]
pub struct Held {
    layout: Layout,
    _lock: Flock<File>,
}

/// The state directory, held, of a host that is known by it.
#[derive(Debug)]
pub struct StateDir {
    held: Held,
    host: HostId,
}

/// Longer than what says who holds a lock, in bytes.
const MAX_HOLDER: usize = 4096;

#[derive(Serialize, Deserialize)]
struct LockFile {
    format: u32,
    agent: ProcessId,
}

impl Held {
    /// Makes the directory where there is none, and takes its lock. One that others may write to, or put another in the
    /// place of, is refused: what lies in it says which process is stopped, and which files come back.
    pub fn take(path: &Path) -> Result<Self, StateDirError> {
        durable::create_folder(path, 0o700)?;
        let lock = lock_after_a_crash(path)?;
        Ok(Self { layout: Layout::of(path), _lock: lock })
    }

    /// Reads or chooses the host id.
    pub fn host(&self) -> Result<HostId, StateDirError> {
        Ok(HostId { machine: machine_id(), instance: instance(&self.path.join("host-id"))? })
    }
}

impl Deref for Held {
    type Target = Layout;

    fn deref(&self) -> &Layout {
        &self.layout
    }
}

impl StateDir {
    /// Makes the directory where there is none, takes its lock, and reads or chooses the host id.
    pub fn open(path: &Path) -> Result<Self, StateDirError> {
        let held = Held::take(path)?;
        let host = held.host()?;
        Ok(Self::new(held, host))
    }

    /// Of what is held, and the id that was read in it.
    pub fn new(held: Held, host: HostId) -> Self {
        Self { held, host }
    }

    /// Who this host is to the others.
    pub fn host(&self) -> HostId {
        self.host
    }
}

impl Deref for StateDir {
    type Target = Layout;

    fn deref(&self) -> &Layout {
        &self.held.layout
    }
}

/// Where things lie in a state directory. To know it takes no lock, so that a look can be had at what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    path: PathBuf,
}

impl Layout {
    /// Of the state directory at this path, whether or not there is one.
    pub fn of(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// The state directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    /// The folder of what is known of each node's process.
    pub fn nodes(&self) -> PathBuf {
        self.path.join("nodes")
    }

    /// The folder of downloads, begun and complete.
    pub fn downloads(&self) -> PathBuf {
        self.path.join("downloads")
    }

    /// What is restored on this host, or was last.
    pub fn restore(&self) -> PathBuf {
        self.path.join("restore")
    }

    /// The folder of the old content of switched files.
    pub fn saved_files(&self) -> PathBuf {
        self.path.join("files")
    }
}

/// A lock whose holder is dead is free in a moment: a process that the holder was starting when it was killed keeps
/// it until it has become its own program, and whoever asks for the holder takes it for an instant.
fn lock_after_a_crash(folder: &Path) -> Result<Flock<File>, StateDirError> {
    for _ in 0..20 {
        match lock(folder) {
            Err(StateDirError::Locked { holder, .. }) if !holder.is_alive() => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return other,
        }
    }
    lock(folder)
}

fn lock(folder: &Path) -> Result<Flock<File>, StateDirError> {
    let path = folder.join("lock");
    let file = durable::open_lock(&path)?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut lock) => {
            // For a person to read. On a full or read-only disk it can't be written, and a node that is down is started all
            // the same.
            let _ = write_holder(&mut lock);
            Ok(lock)
        }
        Err((mut file, Errno::EWOULDBLOCK)) => {
            Err(StateDirError::Locked { path: folder.into(), holder: read_holder(&mut file) })
        }
        Err((_, error)) => Err(error).at("lock", &path)?,
    }
}

/// Not fsynced: the lock itself ends with the boot, and so does what is said of its holder.
fn write_holder(file: &mut File) -> io::Result<()> {
    let holder = LockFile { format: 1, agent: ProcessId::own()? };
    file.set_len(0)?;
    file.write_all(&serde_json::to_vec(&holder)?)
}

/// The process that holds the state directory, or held it last.
pub fn holder(folder: &Path) -> Option<ProcessId> {
    holder_in(&regular_file::read(&folder.join("lock"), MAX_HOLDER).ok()?).0
}

fn read_holder(file: &mut File) -> Holder {
    let mut text = Vec::new();
    match file.take(MAX_HOLDER as u64).read_to_end(&mut text) {
        Ok(_) => holder_in(&text),
        Err(_) => Holder(None),
    }
}

fn holder_in(text: &[u8]) -> Holder {
    Holder(serde_json::from_slice::<LockFile>(text).ok().map(|file| file.agent))
}

impl Holder {
    fn is_alive(&self) -> bool {
        self.0.is_some_and(|agent| !matches!(agent.is_alive(), Ok(false)))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(agent) = self.0 else { return f.write_str("its pid is not known yet") };
        write!(f, "pid {}", agent.pid)?;
        agent.started_at().map_or(Ok(()), |start| write!(f, ", started {}", rfc3339(start)))?;
        match agent.is_stopped() {
            true => write!(f, ", held by a signal; kill -CONT {} lets it go on", agent.pid),
            false => Ok(()),
        }
    }
}

/// This machine's id; `None` where there is none: the file is missing, empty, `uninitialized` (machine-id(5)), or
/// holds the null id.
pub fn machine_id() -> Option<u128> {
    machine_id_in(Path::new("/etc/machine-id"))
}

fn machine_id_in(path: &Path) -> Option<u128> {
    hex_32(read_to_string(path).ok()?.trim()).filter(|id| *id != 0)
}

fn instance(path: &Path) -> Result<u128, StateDirError> {
    if let Some(text) = durable::read_if_there(path)? {
        let found = String::from_utf8_lossy(&text).trim().to_owned();
        return hex_32(&found).ok_or(StateDirError::BadHostId { path: path.into(), found });
    }
    let random = Path::new("/proc/sys/kernel/random/uuid");
    let text = read_to_string(random).at("read", random)?.trim().replace('-', "");
    let id = hex_32(&text).ok_or(StateDirError::BadHostId { path: random.into(), found: text })?;
    durable::write(path, format!("{id:032x}\n").as_bytes(), &Access::of_mode(0o644))?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_instance_is_chosen_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/state");
        let first = StateDir::open(&path).unwrap().host();
        assert_eq!(StateDir::open(&path).unwrap().host(), first);
        let other = StateDir::open(&folder.path().join("other")).unwrap().host();
        assert_eq!((other.machine, other.instance == first.instance), (first.machine, false));
        fs::write(path.join("host-id"), "zebra").unwrap();
        assert!(matches!(StateDir::open(&path), Err(StateDirError::BadHostId { found, .. }) if found == "zebra"));
    }

    #[test]
    fn nobody_waits_for_a_pipe_to_say_who_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&folder.path().join("lock"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(holder(folder.path()), None);
    }

    #[test]
    fn a_second_agent_is_refused_by_the_pid_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let held = StateDir::open(folder.path()).unwrap();
        let refusal = StateDir::open(folder.path()).unwrap_err().to_string();
        let expected = format!("in use by another agent: pid {}, started 20", std::process::id());
        assert!(refusal.contains(&expected), "{refusal}");
        drop(held);
        StateDir::open(folder.path()).unwrap();
    }

    #[test]
    fn a_machine_without_an_id_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine-id");
        assert_eq!(machine_id_in(&path), None);
        for (content, id) in [
            ("", None),
            ("uninitialized\n", None),
            ("00000000000000000000000000000000\n", None),
            ("000000000000000000000000000000ab\n", Some(0xab)),
            ("000000000000000000000000000000ab", Some(0xab)),
        ] {
            fs::write(&path, content).unwrap();
            assert_eq!(machine_id_in(&path), id, "{content:?}");
        }
    }
}

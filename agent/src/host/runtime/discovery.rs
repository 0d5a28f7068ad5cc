//! Which process is a node: the one on file, or else the one that looks like it.
//!
//! The file names the process that a launcher became (`launch.rs`). Where it is missing or speaks of a dead process,
//! the state directory was lost, or somebody else started the node: then a process counts as the node when it
//! executes a file in the folder of the node's `binary`, or below, or the program of one of its command lines, and
//! has the arguments of that command line (its flags in any order), outside of any container, as the node's user. Two such processes are an
//! error: one of them would be forgotten. So is one that has other arguments, or is root's, and can only be this node all
//! the same (`same_node.rs`). What runs as any other user is none of it, whatever it looks like: anybody could run it.
//!
//! A lookalike is looked for before the node is stopped, too. Once an agent has stopped the node itself, only what a launcher
//! has started since then is this node for it ([`Belief`]): no looks are, and none keep it down; but for one that says at its own
//! socket that it is the member (`execute/process_member.rs`). An agent that comes later believes looks again, since somebody
//! else may have started the node.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    Process, Status,
    launch::{NodeCommand, node_file},
    same_node,
};
use crate::host::{
    files::durable::{self, Access, At, FileError},
    process::{
        credentials::Credentials,
        listener::shown,
        process_id::{ProcessId, all_pids, command_line},
    },
    program::path_owner::user_name,
};

/// Why it cannot be said whether a node runs.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its file is no such file.
    #[error("{} does not say which process the node is; if the node is stopped, remove it", path.display())]
    BadFile { path: PathBuf, source: serde_json::Error },
    /// `/proc` could not be read.
    #[error("cannot read /proc")]
    Proc(#[from] io::Error),
    /// More than one process could be the node.
    #[error("node {name} runs more than once: pids {pids:?}")]
    Several { name: String, pids: Vec<u32> },
    /// A process with other arguments has what is this node's alone: to start the node would start it twice.
    #[error(
        "node {name}: {} runs on what is this node's, but was started otherwise than the playbook says: {difference}; \
         correct `argv` or `user`, or stop that process", shown(*pid)
    )]
    Otherwise {
        name: String,
        pid: u32,
        /// Its user or arguments against the playbook's.
        difference: String,
    },
}

#[derive(Serialize, Deserialize)]
struct OnFile {
    format: u32,
    identity: ProcessId,
    exe: PathBuf,
    /// Where its output goes, where its log could not be opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<PathBuf>,
    /// How much was written there before, where that is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begins: Option<u64>,
}

/// Where a node's output goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// `None` is its log.
    pub(crate) instead: Option<PathBuf>,
    /// Where it begins there; `None` where that is not known, as of a device.
    pub(crate) begins: Option<u64>,
}

/// What an agent takes for the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Belief {
    /// The process on file, or else one that looks like it.
    #[default]
    Looks,
    /// The agent has stopped the node: the process on file, or else this one, which it has started since then. That was not
    /// put on file where the disk takes none.
    Started(Option<ProcessId>),
}

/// Whether the node runs. Only true while the caller holds the node's lock.
pub(crate) fn look(nodes: &Path, command: &NodeCommand, belief: Belief) -> Result<Status, DiscoveryError> {
    let known = match (known(nodes, &command.name)?, belief) {
        (None, Belief::Started(Some(identity))) => settled(identity)?,
        (known, _) => known,
    };
    match (known, belief) {
        (Some(process), _) => Ok(Status::Running { process: Some(process) }),
        (None, Belief::Started(_)) => Ok(Status::Stopped),
        (None, Belief::Looks) => look_by_command(command),
    }
}

/// The process on file, as long as it runs.
pub(crate) fn known(nodes: &Path, name: &str) -> Result<Option<Process>, DiscoveryError> {
    Ok(on_file(nodes, name)?.map(settled).transpose()?.flatten())
}

fn look_by_command(command: &NodeCommand) -> Result<Status, DiscoveryError> {
    let mut found = Vec::new();
    for identity in find(command)? {
        found.extend(settled(identity)?);
    }
    match (found.len(), found.pop()) {
        (0 | 1, Some(process)) => Ok(Status::Running { process: Some(process) }),
        (_, None) => refuse_a_lookalike(command, None).map(|()| Status::Stopped),
        (_, Some(last)) => {
            let pids = found.iter().chain([&last]).map(|process| process.identity.pid).collect();
            Err(DiscoveryError::Several { name: command.name.clone(), pids })
        }
    }
}

/// How many processes are looked at for words about the one that is most like the node.
const MOST_NEAR: usize = 16;

/// Refuses what can only be the node, beside the process that is the node.
pub(crate) fn refuse_a_lookalike(command: &NodeCommand, node: Option<u32>) -> Result<(), DiscoveryError> {
    let own = command.argv.get(1..).unwrap_or_default();
    let users = Users::of(command);
    for relative in relatives(command, |uid| users.may_be_started_by(uid))? {
        let pid = relative.pid;
        if node == Some(pid) {
            continue;
        }
        // One that has just ended holds nothing any more.
        if same_node::is_of_one_node(&relative.arguments, own) && ProcessId::of(pid)?.is_some() {
            let difference = relative.difference(own, &users);
            return Err(DiscoveryError::Otherwise { name: command.name.clone(), pid, difference });
        }
    }
    Ok(())
}

/// The process of the node's executable whose arguments are most like the playbook's, in words; where a node that
/// nobody finds is alive all the same.
pub(crate) fn nearest(command: &NodeCommand) -> io::Result<Option<String>> {
    let own = command.argv.get(1..).unwrap_or_default();
    let nearest = relatives(command, |_| true)?
        .take(MOST_NEAR)
        .max_by_key(|relative| same_node::in_common(&relative.arguments, own));
    let users = Users::of(command);
    let nearest =
        nearest.map(|found| format!("pid {} looks most like it: {}", found.pid, found.difference(own, &users)));
    match nearest {
        Some(nearest) => Ok(Some(nearest)),
        None => namesake(command, &users),
    }
}

/// A process of the node's user that has the node's arguments and executes something else, in words: its `binary` was
/// replaced or leads elsewhere by now.
fn namesake(command: &NodeCommand, users: &Users) -> io::Result<Option<String>> {
    let Some((program, own)) = command.argv.split_first().filter(|(_, own)| !own.is_empty()) else { return Ok(None) };
    let is_it = |pid: u32| {
        let is_nodes = users.is_nodes(Credentials::of_process(pid).ok()?.uid) && is_of_this_host(pid).ok()?;
        let arguments = is_nodes.then(|| command_line(pid).ok())??;
        same_node::mean_the_same(arguments.get(1..)?, own).then_some(pid)
    };
    let found = all_pids()?.into_iter().find_map(is_it);
    Ok(found.map(|pid| format!("{} has its arguments, and {program} does not lead to what it executes", shown(pid))))
}

/// A process of the node's executable.
struct Relative {
    pid: u32,
    uid: u32,
    arguments: Vec<String>,
}

impl Relative {
    fn difference(&self, playbook: &[String], users: &Users) -> String {
        match users.is_nodes(self.uid) {
            true if same_node::mean_the_same(&self.arguments, playbook) => {
                "it has the node's arguments, and the agent has not started it".into()
            }
            true => same_node::difference(&self.arguments, playbook).to_string(),
            false => format!("it runs as {}, and by the playbook it is {}'s", user_name(self.uid), users.node_name()),
        }
    }
}

/// Processes of the node's executable and of these users, whatever their arguments, which come with them: one after the
/// other, and read only once it is known whose they are, since any user may have many with long arguments.
fn relatives<'a>(
    command: &'a NodeCommand,
    is_wanted: impl Fn(u32) -> bool + 'a,
) -> io::Result<impl Iterator<Item = Relative> + 'a> {
    let known = Known::of(command);
    let relative = move |pid: u32| {
        let uid = known.has_program(pid).ok()?.then(|| Credentials::of_process(pid).ok())??.uid;
        is_wanted(uid).then(|| Some(Relative { pid, uid, arguments: command_line(pid).ok()?.get(1..)?.to_vec() }))?
    };
    Ok(all_pids()?.into_iter().filter_map(relative))
}

/// Whose process the node can be.
struct Users {
    /// The node's user; `None` where the system does not know it.
    node: Option<u32>,
    own: u32,
}

impl Users {
    fn of(command: &NodeCommand) -> Self {
        let own = Credentials::own().uid;
        let node = match command.user.as_deref() {
            Some(name) => Credentials::of_name(name).ok().flatten().map(|user| user.uid),
            None => Some(own),
        };
        Self { node, own }
    }

    fn is_nodes(&self, uid: u32) -> bool {
        self.node == Some(uid)
    }

    /// Nobody else's process is worth a refusal: that would let every user of the host stop every run.
    fn may_be_started_by(&self, uid: u32) -> bool {
        self.is_nodes(uid) || uid == self.own || uid == 0
    }

    fn node_name(&self) -> String {
        self.node.map_or_else(|| "an unknown user".into(), user_name)
    }
}

/// The process with its executable; `None` when it has ended.
///
/// One that is just ending has no executable any more but may still hold its files and ports: its end is waited
/// for, a moment, so that "stopped" means that another may start.
pub(super) fn settled(identity: ProcessId) -> io::Result<Option<Process>> {
    for _ in 0..1_000 {
        match identity.executable() {
            Ok(Some(exe)) => return Ok(Some(Process { identity, exe: Some(exe) })),
            Ok(None) if !identity.is_alive()? => return Ok(None),
            Ok(None) => sleep(Duration::from_millis(1)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
            Err(error) => return Err(error),
        }
    }
    Ok(identity.is_alive()?.then_some(Process { identity, exe: None }))
}

/// Puts a process on file as the node, durably.
pub(crate) fn put_on_file(
    nodes: &Path,
    name: &str,
    identity: ProcessId,
    exe: PathBuf,
    Written { instead: output, begins }: Written,
) -> Result<(), FileError> {
    let path = node_file(nodes, name, "json");
    let json = serde_json::to_vec(&OnFile { format: 1, identity, exe, output, begins }).at("write", &path)?;
    durable::write(&path, &json, &Access::PRIVATE)
}

/// The process on file, whether it still runs or not.
pub(super) fn on_file(nodes: &Path, name: &str) -> Result<Option<ProcessId>, DiscoveryError> {
    Ok(read_file(nodes, name)?.map(|on_file| on_file.identity))
}

/// The same, and where its output goes.
pub(super) fn output_on_file(nodes: &Path, name: &str) -> Result<Option<(ProcessId, Written)>, DiscoveryError> {
    let written = |OnFile { identity, output, begins, .. }| (identity, Written { instead: output, begins });
    Ok(read_file(nodes, name)?.map(written))
}

fn read_file(nodes: &Path, name: &str) -> Result<Option<OnFile>, DiscoveryError> {
    let path = node_file(nodes, name, "json");
    let Some(json) = durable::read_if_there(&path)? else { return Ok(None) };
    serde_json::from_slice(&json).map(Some).map_err(|source| DiscoveryError::BadFile { path, source })
}

fn find(command: &NodeCommand) -> Result<Vec<ProcessId>, io::Error> {
    let known = Known::of(command);
    // Whatever can't be read belongs to another user or has just ended: this agent did not start it.
    let is_node = |pid: &u32| known.is_it(*pid).unwrap_or(false);
    let mut found = Vec::new();
    for pid in all_pids()?.into_iter().filter(is_node) {
        found.extend(ProcessId::of(pid)?);
    }
    Ok(found)
}

/// What the node may look like, with all links followed, as the kernel shows executables.
struct Known<'a> {
    folder: Option<PathBuf>,
    programs: Vec<PathBuf>,
    arguments: Vec<&'a [String]>,
    users: Users,
}

impl<'a> Known<'a> {
    fn of(command: &'a NodeCommand) -> Self {
        let command_lines = || std::iter::once(&command.argv).chain(&command.also_as);
        let programs = command_lines().filter_map(|argv| fs::canonicalize(argv.first()?).ok());
        let folder = command.binary.as_deref().and_then(Path::parent).and_then(|folder| fs::canonicalize(folder).ok());
        Self {
            folder,
            programs: programs.collect(),
            arguments: command_lines().filter_map(|argv| argv.get(1..)).collect(),
            users: Users::of(command),
        }
    }

    /// The program first: one link tells nearly all of a host's processes apart, and the kernel takes far longer to say whose one is.
    fn is_it(&self, pid: u32) -> io::Result<bool> {
        Ok(self.has_program(pid)?
            && self.users.is_nodes(Credentials::of_process(pid)?.uid)
            && self.has_arguments(command_line(pid)?.get(1..).unwrap_or_default()))
    }

    fn has_arguments(&self, arguments: &[String]) -> bool {
        self.arguments.iter().any(|known| same_node::mean_the_same(arguments, known))
    }

    fn has_program(&self, pid: u32) -> io::Result<bool> {
        let exe = undeleted(fs::read_link(format!("/proc/{pid}/exe"))?);
        let is_known =
            self.programs.contains(&exe) || self.folder.as_ref().is_some_and(|folder| exe.starts_with(folder));
        Ok(is_known && is_of_this_host(pid)?)
    }
}

/// A container's node may have the same path and arguments, in a file system of its own.
fn is_of_this_host(pid: u32) -> io::Result<bool> {
    Ok(fs::read_link(format!("/proc/{pid}/ns/pid"))? == fs::read_link("/proc/self/ns/pid")?)
}

/// The path that an executable had before its file was deleted or replaced (proc_pid_exe(5)).
pub(crate) fn undeleted(exe: PathBuf) -> PathBuf {
    match exe.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(path) => PathBuf::from(OsStr::from_bytes(path)),
        None => exe,
    }
}

//! A try of what only a node's user can tell: whether it may enter the folders, run the programs and open the files of
//! its start; and of what a process can tell of itself alone: which resource limits it may have. It also reads the end of
//! a log that root does not open.
//!
//! The launcher becomes the node's user first and changes the folder and executes as that, so what is in its way is not
//! seen by root; and found when the node is down, it would keep it down on its old binary, too. So the launcher becomes
//! the user once more, in preflight, and only looks.

use std::{
    fs::File,
    io::{self, Seek, Write, stdin},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::fs::{Access, AtFlags, CWD, MemfdFlags, OFlags, accessat, memfd_create};
use serde::{Deserialize, Serialize};

use super::exec;
use crate::{
    host::{
        files::{
            durable::{At, FileError},
            log_end,
        },
        process::limits::Limits,
        runtime::launch::Answer,
    },
    words::with_causes,
};

/// The launcher's argument for it.
pub(crate) const ARGUMENT: &str = "trial";

const LIMIT: Duration = Duration::from_secs(10);

/// What is to be tried, and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trial {
    /// `None` is the agent's own.
    pub(crate) user: Option<String>,
    /// What it is to have at least, before it becomes the user.
    #[serde(default)]
    pub(crate) limits: Option<Limits>,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) programs: Vec<PathBuf>,
    /// What it appends to; one that is not there yet could be made.
    pub(crate) log: Option<PathBuf>,
    pub(crate) switched: Option<Switched>,
    /// A log whose end is to be told, and from where on.
    #[serde(default)]
    pub(crate) told: Option<(PathBuf, u64)>,
}

/// A file that takes another's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Switched {
    /// The one that is there: where the user cannot read it, the other need not be read either, as it may be for root
    /// (`EnvironmentFile=`, systemd.exec(5)).
    pub(crate) old: Option<PathBuf>,
    /// As the other one will be, under another name.
    pub(crate) new: PathBuf,
}

impl Trial {
    /// Has it tried by this launcher; says what the user cannot do. A launcher that nobody waits for any more is killed: the
    /// user that it becomes may stop it, or have it look at folders without end.
    pub(crate) async fn run(&self, launcher: &[String]) -> Result<(), String> {
        self.ask(launcher).await.map(drop)
    }

    /// As [`Trial::run`], with what is told.
    pub(crate) async fn ask(&self, launcher: &[String]) -> Result<String, String> {
        let untried = |why: String| format!("cannot be tried: {why}");
        let order = self.order().map_err(|error| untried(error.to_string()))?;
        let argv: Vec<_> = launcher.iter().cloned().chain([ARGUMENT.to_owned()]).collect();
        let ended = exec::run_with(&argv, order, LIMIT, &exec::Output::Kept, exec::Unwaited::Killed).await;
        let ended = ended.map_err(|error| untried(with_causes(&error)))?;
        match (ended.is_success(), serde_json::from_str(&ended.stdout)) {
            (true, _) => Ok(ended.stdout),
            (false, Ok(Answer::Failed { reason })) => Err(reason),
            (false, _) => Err(untried(ended.how)),
        }
    }

    /// As a file without a name, which nobody waits for.
    fn order(&self) -> io::Result<Stdio> {
        let mut order = File::from(memfd_create("trial", MemfdFlags::CLOEXEC)?);
        order.write_all(&serde_json::to_vec(self)?)?;
        order.rewind()?;
        Ok(order.into())
    }

    pub(crate) fn read() -> Result<Self, serde_json::Error> {
        serde_json::from_reader(stdin().lock())
    }

    /// In the process that has become the user.
    pub(crate) fn look(&self) -> Result<(), FileError> {
        self.folders.iter().try_for_each(|folder| may_execute(folder).at("enter", folder))?;
        self.programs.iter().try_for_each(|program| may_execute(program).at("run", program))?;
        self.log.iter().try_for_each(|log| may_append(log).at("append to", log))?;
        self.switched.iter().try_for_each(Switched::look)?;
        self.told.iter().try_for_each(|(log, from)| tell_end(log, *from).at("read", log))
    }
}

impl Switched {
    fn look(&self) -> Result<(), FileError> {
        match &self.old {
            Some(old) if File::open(old).is_err() => Ok(()),
            _ => File::open(&self.new).map(drop).at("read", &self.new),
        }
    }
}

fn tell_end(log: &Path, from: u64) -> io::Result<()> {
    io::stdout().write_all(&log_end::end_as_user(log, from)?)
}

/// To search a folder is to execute it (access(2)).
fn may_execute(path: &Path) -> rustix::io::Result<()> {
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)
}

fn may_append(path: &Path) -> io::Result<()> {
    match open_log(path, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            Ok(accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
        }
        opened => opened.map(drop),
    }
}

/// Opens a log as the user that this process has become: whatever is found under the name, it is no more than that user
/// may do. Nobody is waited for, such as the reader of a pipe.
pub(crate) fn open_log(path: &Path, may_create: bool) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    File::options().append(true).create(may_create).mode(0o640).custom_flags(flags).open(path)
}

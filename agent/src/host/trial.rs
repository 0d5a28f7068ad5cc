//! A try of what only a node's user can tell: whether it may enter the folders, run the programs and open the files of
//! its start.
//!
//! The launcher becomes the node's user first and changes the folder and executes as that, so what is in its way is not
//! seen by root; and found when the node is down, it would keep it down on its old binary, too. So the launcher becomes
//! the user once more, in preflight, and only looks.

use std::{
    fs::File,
    io::{self, Write, stdin},
    os::unix::{fs::OpenOptionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};
use serde::{Deserialize, Serialize};

use super::{
    durable::{At, FileError},
    runtime::launch::Answer,
};

/// The launcher's argument for it.
pub(super) const ARGUMENT: &str = "trial";

/// How long it may take.
const LIMIT: Duration = Duration::from_secs(10);

/// What is to be tried, and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub(crate) user: String,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) programs: Vec<PathBuf>,
    /// What it appends to; one that is not there yet could be made.
    pub(crate) log: Option<PathBuf>,
    pub(crate) switched: Option<Switched>,
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
    /// Has it tried by this launcher; says what the user cannot do.
    pub(crate) fn run(&self, launcher: &[String]) -> Result<(), String> {
        let output = self.ask(launcher).map_err(|error| format!("cannot be tried: {error}"))?;
        match (output.status.success(), serde_json::from_slice(&output.stdout)) {
            (true, _) => Ok(()),
            (false, Ok(Answer::Failed { reason })) => Err(reason),
            (false, _) => Err(format!("cannot be tried: {}", output.status)),
        }
    }

    fn ask(&self, launcher: &[String]) -> io::Result<Output> {
        let (program, arguments) = launcher.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).arg(ARGUMENT).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        if let Some(mut pipe) = child.stdin.take() {
            pipe.write_all(&serde_json::to_vec(self)?)?;
        }
        // The user that it becomes may stop it, so it is not waited for without end. What it says fits into the pipe.
        let deadline = Instant::now() + LIMIT;
        while child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                child.kill()?;
                child.wait()?;
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", LIMIT.as_secs())));
            }
            sleep(Duration::from_millis(5));
        }
        child.wait_with_output()
    }

    /// The launcher's order.
    pub(super) fn read() -> Result<Self, serde_json::Error> {
        serde_json::from_reader(stdin().lock())
    }

    /// In the process that has become the user.
    pub(super) fn look(&self) -> Result<(), FileError> {
        self.folders.iter().try_for_each(|folder| may_execute(folder).at("enter", folder))?;
        self.programs.iter().try_for_each(|program| may_execute(program).at("run", program))?;
        self.log.iter().try_for_each(|log| may_append(log).at("append to", log))?;
        self.switched.iter().try_for_each(Switched::look)
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
pub(super) fn open_log(path: &Path, may_create: bool) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    File::options().append(true).create(may_create).mode(0o640).custom_flags(flags).open(path)
}

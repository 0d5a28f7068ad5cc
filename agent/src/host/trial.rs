//! A try of what only a node's user can tell: whether it may enter the folders and run the programs of its start.
//!
//! The launcher becomes the node's user first and changes the folder and executes as that, so what is in its way is not
//! seen by root; and found when the node is down, it would keep it down on its old binary, too. So the launcher becomes
//! the user once more, in preflight, and only looks.

use std::{
    io::{self, Write, stdin},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde::{Deserialize, Serialize};

use super::{
    durable::{At, FileError},
    runtime::launch::Answer,
};

/// The launcher's argument for it.
pub(super) const ARGUMENT: &str = "trial";

/// What is to be tried, and as whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub(crate) user: String,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) programs: Vec<PathBuf>,
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
        child.wait_with_output()
    }

    /// The launcher's order.
    pub(super) fn read() -> Result<Self, serde_json::Error> {
        serde_json::from_reader(stdin().lock())
    }

    /// In the process that has become the user.
    pub(super) fn look(&self) -> Result<(), FileError> {
        self.folders.iter().try_for_each(|folder| may_execute(folder).at("enter", folder))?;
        self.programs.iter().try_for_each(|program| may_execute(program).at("run", program))
    }
}

/// To search a folder is to execute it (access(2)).
fn may_execute(path: &Path) -> rustix::io::Result<()> {
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)
}

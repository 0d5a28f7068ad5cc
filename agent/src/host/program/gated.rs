//! A command that begins only when it is let, and never where whoever would let it is gone.
//!
//! Who is to find out, after its own death, whether a command still runs must know its process before it does anything. So a
//! shell waits for a word on a pipe, and becomes the command: the process stays the same. The pipe is found by way of `/proc`, so
//! no descriptor is passed on.

use std::{
    ffi::OsString,
    io::{self, PipeReader, PipeWriter, Write as _},
    os::{
        fd::{AsFd as _, AsRawFd as _},
        unix::fs::PermissionsExt as _,
    },
};

use tokio::process::{Child, Command};

use super::{path_owner::PathOwnerError, program_path};
use crate::keys::ProcessId;

/// A pipe whose other end is gone gives no word; one of a process that is gone cannot be opened.
const GATE: &str = "read -r word <\"$0\" && test \"$word\" = begin && exec \"$@\"";

/// What is to be run, its program first; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argv {
    program: OsString,
    arguments: Vec<OsString>,
}

#[derive(Debug, thiserror::Error)]
pub enum GateError {
    #[error("there is no program `{program}` that can be executed; expected one that $PATH finds, or a path")]
    Missing {
        /// As it was typed.
        program: String,
    },
    /// Others may change what would be run.
    #[error("the command {program} is not run")]
    Program {
        /// As it was typed.
        program: String,
        source: Box<PathOwnerError>,
    },
    #[error("the command cannot be started")]
    Start(#[source] io::Error),
}

impl Argv {
    /// `None` where there is no program.
    pub fn new(words: &[OsString]) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self { program: program.clone(), arguments: arguments.to_vec() })
    }

    /// The program without its folders, for people.
    pub fn name(&self) -> String {
        let path = std::path::Path::new(&self.program);
        path.file_name().unwrap_or(&self.program).to_string_lossy().into_owned()
    }

    /// Refuses one that is not there, or that others than root and the agent's user may change.
    ///
    /// # Errors
    /// [`GateError::Missing`], [`GateError::Program`]
    pub fn check(&self) -> Result<(), GateError> {
        let program = self.program.to_string_lossy().into_owned();
        let is_executable = |path: &std::path::PathBuf| {
            path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        if !program_path::candidates(&program).iter().any(is_executable) {
            return Err(GateError::Missing { program });
        }
        program_path::check(&program).map_err(|source| GateError::Program { program, source: source.into() })
    }
}

/// A command that waits to be let.
#[derive(Debug)]
pub struct Gated {
    pub process: ProcessId,
    child: Child,
    word: PipeWriter,
    /// The shell opens it by this process's `/proc`.
    _wait: PipeReader,
}

impl Gated {
    /// Starts the shell that waits. `is_beside`: what the command prints goes to stderr.
    ///
    /// # Errors
    /// [`GateError`]
    pub fn start(argv: &Argv, is_beside: bool) -> Result<Self, GateError> {
        argv.check()?;
        let (wait, word) = io::pipe().map_err(GateError::Start)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), wait.as_raw_fd());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", GATE, &path]).arg(&argv.program).args(&argv.arguments);
        if is_beside {
            command.stdout(io::stderr().as_fd().try_clone_to_owned().map_err(GateError::Start)?);
        }
        let child = command.spawn().map_err(GateError::Start)?;
        let found = child.id().map_or(Ok(None), ProcessId::of).map_err(GateError::Start)?;
        let gone = || GateError::Start(io::Error::other("the shell that was to become it has ended"));
        Ok(Self { process: found.ok_or_else(gone)?, child, word, _wait: wait })
    }

    /// Lets it begin, and waits for its end.
    ///
    /// # Errors
    /// It could not be let begin, or how it ended cannot be known.
    pub async fn run(mut self) -> io::Result<std::process::ExitStatus> {
        self.word.write_all(b"begin\n")?;
        drop(self.word);
        self.child.wait().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn touch(path: &std::path::Path) -> Argv {
        let words = ["/bin/sh", "-c", ": > \"$0\"; exit 3", path.to_str().unwrap()].map(OsString::from);
        Argv::new(&words).unwrap()
    }

    #[tokio::test]
    async fn a_command_begins_when_it_is_let_and_its_process_stays_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ran");
        let gated = Gated::start(&touch(&path), false).unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!path.exists() && gated.process.is_alive().unwrap(), "it waits");
        let ended = gated.run().await.unwrap();
        assert_eq!((ended.code(), path.exists()), (Some(3), true));
    }

    #[tokio::test]
    async fn a_command_that_nobody_lets_never_begins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ran");
        let Gated { mut child, word, _wait, .. } = Gated::start(&touch(&path), false).unwrap();
        // What the end of this process would do.
        drop((word, _wait));
        assert!(!child.wait().await.unwrap().success());
        assert!(!path.exists());
    }

    #[test]
    fn a_program_is_named_without_its_folders_and_must_be_there() {
        let argv = Argv::new(&["/usr/sbin/no-such-reboot", "--token=secret"].map(OsString::from)).unwrap();
        assert_eq!(argv.name(), "no-such-reboot");
        assert!(argv.check().is_err());
        assert_eq!(Argv::new(&[]), None);
    }
}

//! Whether a runtime finds what it needs to start and stop its node: user, folders, log, programs.
//!
//! Only looks, so that it can be asked before anything is stopped: each of these would else be tried for the first
//! time when the node is down already. Whether the node itself is well is not known here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::{Runtime, command::CommandRuntime, launch::NodeCommand, process::ProcessRuntime};
use crate::{
    guarded::{FileError, Place},
    host::{
        process::credentials::Credentials,
        program::{
            launcher,
            path_owner::{self, PathOwnerError, Writers},
            program_path,
            trial::Trial,
        },
    },
    words::with_causes,
};

/// What the start of a node goes through besides what its runtime names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The executable that `binary` leads to by then.
    pub executable: Option<PathBuf>,
    /// The folders of files that will be new to it.
    pub folders: Vec<PathBuf>,
}

/// Something of a runtime is missing.
#[derive(Debug, thiserror::Error)]
#[error("node {node}: `{field}`: {fault}{}", if remedy.is_empty() { String::new() } else { format!("; {remedy}") })]
pub struct Unfit {
    pub node: String,
    /// The playbook's key under `runtime`.
    pub field: &'static str,
    pub fault: String,
    /// What to do; empty where the fault ends with the command to type.
    pub remedy: &'static str,
}

/// What is wrong, and what to do about it.
type Fault = (String, &'static str);

impl Runtime {
    /// Looks for all that a start and a stop need.
    pub async fn check(&self, needs: &Needs) -> Result<(), Unfit> {
        match self {
            Self::Process(runtime) => {
                runtime.command().check()?;
                runtime.try_limits().await?;
                runtime.try_as_user(needs).await
            }
            Self::Command(runtime) => runtime.check(),
            // What a unit needs only systemd can tell: `systemd/preflight.rs`.
            Self::Systemd(_) => Ok(()),
        }
    }

    /// Looks whether the log could be opened, once more: since preflight hours may have passed.
    pub async fn check_log(&self) -> Result<(), Unfit> {
        match self {
            Self::Process(runtime) => runtime.try_log().await,
            Self::Command(_) | Self::Systemd(_) => Ok(()),
        }
    }
}

impl ProcessRuntime {
    async fn try_log(&self) -> Result<(), Unfit> {
        let command = self.command();
        let tried = match command.other_user() {
            Some(user) => self.try_log_as(&user).await,
            None => command.check_log(),
        };
        first(&command.name, [("log", tried)])
    }

    async fn try_log_as(&self, user: &str) -> Result<(), Fault> {
        let remedy = "look at what is there; remove it, give the user a folder or file of its own, or name another";
        // One that root opens is none of the user's.
        let log = log(&self.command().log).err().map(|_| self.command().log.clone());
        let tried = Trial { user: Some(user.to_owned()), log, ..Trial::default() }.run(self.launcher()).await;
        tried.map_err(|fault| (format!("{user} {fault}"), remedy))
    }

    /// Whether it would have the limits that it has now.
    async fn try_limits(&self) -> Result<(), Unfit> {
        let limits = self.limits().await;
        let tried = match limits.map(|limits| Trial { limits: Some(limits), ..Trial::default() }) {
            Ok(trial) => trial.run(self.launcher()).await,
            Err(error) => Err(with_causes(&error)),
        };
        first(&self.command().name, [("kind: process", tried.map_err(|fault| (fault, "")))])
    }

    /// What stands in the way of another user is not seen with the agent's eyes.
    async fn try_as_user(&self, needs: &Needs) -> Result<(), Unfit> {
        let command = self.command();
        let Some(user) = command.other_user() else { return Ok(()) };
        let folders = command.cwd.iter().chain(&needs.folders).cloned().collect();
        let programs = command.argv.first().map(PathBuf::from).into_iter().chain(needs.executable.clone()).collect();
        let tried = Trial { user: Some(user.clone()), folders, programs, ..Trial::default() };
        let tried = tried.run(self.launcher()).await;
        let entered = tried.map_err(|fault| (format!("{user} {fault}"), "let the user in there, or name another"));
        first(&command.name, [("user", entered), ("log", self.try_log_as(&user).await)])
    }
}

impl NodeCommand {
    fn check(&self) -> Result<(), Unfit> {
        let program = self.argv.first().map_or("", String::as_str);
        let user = self.user.as_deref().map_or(Ok(()), user);
        let cwd = self.cwd.as_deref().map_or(Ok(()), folder);
        let argv = absolute_program(program).and_then(|()| safe(program, &self.writers()));
        // Another user tries by itself what the agent does not open for it.
        let log = if self.other_user().is_some() { Ok(()) } else { self.check_log() };
        let checks = [("argv", argv), ("user", user), ("cwd", cwd), ("log", log)];
        first(&self.name, checks)
    }

    fn check_log(&self) -> Result<(), Fault> {
        let remedy = "make its folder, or let nobody but the agent write there";
        log(&self.log).map_err(|error| (with_causes(&error), if error.is_unguarded() { "" } else { remedy }))
    }

    /// Its user, where that is not the agent's.
    pub(in crate::host) fn other_user(&self) -> Option<String> {
        self.user.clone().filter(|user| launcher::other_user(user).is_some())
    }

    /// Who may change what it runs. One of a user that is not there is refused for that.
    fn writers(&self) -> Writers {
        let user = self.user.as_deref().and_then(|name| Credentials::of_name(name).ok()?);
        user.map_or_else(Writers::own, |user| user.writers())
    }
}

impl CommandRuntime {
    fn check(&self) -> Result<(), Unfit> {
        let verbs = [("start", &self.start), ("stop", &self.stop), ("status", &self.status)];
        let check = |name: &str| {
            program(name)?;
            program_path::check(name).map_err(unsafe_to_run)
        };
        first(&self.name, verbs.map(|(verb, argv)| (verb, check(argv.first().map_or("", String::as_str)))))
    }
}

fn first<const N: usize>(node: &str, checks: [(&'static str, Result<(), Fault>); N]) -> Result<(), Unfit> {
    checks.into_iter().try_for_each(|(field, check)| {
        check.map_err(|(fault, remedy)| Unfit { node: node.into(), field, fault, remedy })
    })
}

fn user(name: &str) -> Result<(), Fault> {
    launcher::check_user(name).map_err(|fault| (fault, "create the user, run the agent as root, or name another"))
}

fn folder(path: &Path) -> Result<(), Fault> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(|error| (format!("{}: {error}", path.display()), "let the agent in there, or name another")),
        Ok(_) => Err((format!("{} is no folder", path.display()), "name a folder")),
        Err(error) => Err((format!("{}: {error}", path.display()), "make the folder, or name another")),
    }
}

/// Whether the agent opens it: nobody else decides what is found there. A log that is not there yet is not made: that is
/// the start's.
fn log(path: &Path) -> Result<(), FileError> {
    let place = Place::to_append(path)?;
    match place.append(None) {
        Err(error) if error.is_absent() => place.check_writable(),
        opened => opened.map(drop),
    }
}

/// The `process` runtime looks no name up: what runs must be known before it runs.
fn absolute_program(name: &str) -> Result<(), Fault> {
    match Path::new(name).is_absolute() {
        true => program(name),
        false => Err((format!("`{name}` is no absolute path"), "begin it with {{binary}} or an absolute path")),
    }
}

fn program(name: &str) -> Result<(), Fault> {
    let remedy = "install it, or correct its path";
    let found = program_path::candidates(name).into_iter().find(|path| path.is_file());
    match found {
        None => Err((format!("there is no program `{name}`"), remedy)),
        Some(path) if accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS).is_err() => {
            Err((format!("{} is not executable", path.display()), "make it executable"))
        }
        Some(_) => Ok(()),
    }
}

fn safe(program: &str, writers: &Writers) -> Result<(), Fault> {
    path_owner::check(Path::new(program), writers).map_err(unsafe_to_run)
}

fn unsafe_to_run(error: PathOwnerError) -> Fault {
    (with_causes(&error), "")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, os::unix::fs::PermissionsExt};

    use super::*;

    fn sound(folder: &Path) -> NodeCommand {
        NodeCommand {
            name: "m1".into(),
            argv: vec!["/bin/true".into()],
            also_as: Vec::new(),
            env: BTreeMap::new(),
            cwd: Some(folder.into()),
            user: Some(nix::unistd::User::from_uid(nix::unistd::Uid::effective()).unwrap().unwrap().name),
            log: folder.join("log"),
            binary: None,
        }
    }

    #[test]
    fn what_a_start_of_the_agents_own_needs_is_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "no program").unwrap();
        let sound = sound(folder.path());
        sound.check().unwrap();
        assert!(!sound.log.exists(), "nothing is made");
        for (change, field, fault) in [
            (Box::new(|c: &mut NodeCommand| c.argv.clear()) as Box<dyn Fn(&mut NodeCommand)>, "argv", "`` is no abs"),
            (Box::new(|c| c.argv[0] = "true".into()), "argv", "`true` is no absolute path"),
            (Box::new(|c| c.argv[0] = "/no/such".into()), "argv", "there is no program `/no/such`"),
            (Box::new(|c| c.argv[0] = at("file").display().to_string()), "argv", "file is not executable"),
            (Box::new(|c| c.user = Some("nobody such".into())), "user", "there is no user `nobody such`"),
            (Box::new(|c| c.cwd = Some(at("absent"))), "cwd", "No such file"),
            (Box::new(|c| c.cwd = Some(at("file"))), "cwd", "is no folder"),
            (Box::new(|c| c.log = at("absent/log")), "log", "No such file"),
            (Box::new(|c| c.log = folder.path().into()), "log", "Is a directory"),
        ] {
            let mut command = sound.clone();
            change(&mut command);
            let error = command.check().unwrap_err();
            assert_eq!((error.node.as_str(), error.field), ("m1", field), "{error}");
            assert!(error.fault.contains(fault), "{error}");
        }
    }

    #[test]
    fn an_operators_programs_are_looked_for_as_they_will_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        fs::write(&own, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
        let argv = |program: &str| vec![program.to_owned()];
        let sound = CommandRuntime {
            name: "m1".into(),
            start: argv("true"),
            stop: argv(&own.display().to_string()),
            status: argv("/bin/true"),
            patience: std::time::Duration::ZERO,
            nodes: folder.path().into(),
            last_named: Default::default(),
        };
        sound.check().unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o644)).unwrap();
        for (runtime, expected) in [
            (sound.clone(), "node m1: `stop`: "),
            (CommandRuntime { start: argv("no-such-program"), ..sound.clone() }, "node m1: `start`: there is no"),
            (CommandRuntime { stop: argv("true"), status: argv(""), ..sound }, "node m1: `status`: there is no"),
        ] {
            let error = runtime.check().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}

//! Why an operator's command did not do what it is for, in words for a person.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    host::{
        files::durable::FileError,
        process::listener::shown,
        program::{
            exec::{ExecError, quoted},
            path_owner::PathOwnerError,
        },
    },
    words::typed,
};

/// Why a command did not do what it is for. Whether the node runs is then unknown until it is looked at.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The folder for the output could not be made, or the stop's lock not be had.
    #[error(transparent)]
    File(#[from] FileError),
    /// Others may change what would be run; it was not run.
    #[error("node {name}: {what} is not safe to run{}", by_hand(what, *run, argv))]
    Owner {
        name: String,
        /// `start`, `stop` or `status`.
        what: &'static str,
        argv: Vec<String>,
        /// When it would have been run.
        run: Run,
        source: Box<PathOwnerError>,
    },
    /// It could not be run, or did not end in time.
    #[error("node {name}: {what} failed")]
    Exec {
        name: String,
        /// `start`, `stop` or `status`.
        what: &'static str,
        source: ExecError,
    },
    /// It ended with another exit code than expected.
    #[error("node {name}: {what} ended with {how}, expected {expected}{}", quoted(output))]
    Failed {
        name: String,
        /// `start`, `stop` or `status`.
        what: &'static str,
        /// `exit 1`, `signal 9`.
        how: String,
        /// The exit codes that mean something.
        expected: &'static str,
        output: String,
    },
    /// A stop that outlived its agent may still end the node, so nothing that is seen of it can be relied on.
    #[error(
        "node {name}: the stop command of an earlier agent still runs after {after:?}: {}; if it is of that command, wait until \
         it has ended; if not, or it never ends, type: rm {}",
        held(lock, *holder), typed(&lock.to_string_lossy())
    )]
    StopUnderWay {
        name: String,
        /// How long it was waited for.
        after: Duration,
        /// The file that it has open.
        lock: PathBuf,
        holder: Option<u32>,
    },
    /// What `status` names has changed since it was looked at. Nothing was done.
    #[error(
        "node {name}: when it was looked at {before}, but now `status` names {now}; nothing was stopped; see why it names \
         another one, then repeat the command"
    )]
    Another {
        name: String,
        before: String,
        /// The other one, with its user and program.
        now: String,
    },
    /// The node runs on, and nobody knows surely which process is to be killed.
    #[error(
        "node {name} still runs, says its `status`, {after:?} after its stop command was begun; it was not killed: nothing shows \
         which process it is ({named}); if it did end, correct `status`, which must exit 3 then; else stop it by hand"
    )]
    NotKilled {
        name: String,
        /// How long it was waited for.
        after: Duration,
        /// What `status` named.
        named: String,
        /// Why its stop command failed, if it did.
        source: Option<Box<CommandError>>,
    },
    /// `stop` ended well but the node runs on.
    #[error(
        "node {name} still runs, says its `status`, {after:?} after its stop command was begun; if it did end, correct \
         `status`, which must exit 3 then"
    )]
    StillRunning {
        name: String,
        /// How long it was waited for.
        after: Duration,
    },
}

fn held(lock: &Path, holder: Option<u32>) -> String {
    match holder {
        Some(pid) => format!("{} has {} open", shown(pid), lock.display()),
        None => format!("somebody has {} open", lock.display()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    Now,
    Later,
}

/// A node that is down is not started by the agent then, and a person may know better.
fn by_hand(what: &str, run: Run, argv: &[String]) -> String {
    match (what, run) {
        ("start", Run::Now) => {
            let words: Vec<_> = argv.iter().map(|word| typed(word)).collect();
            format!("; the node may be down: where its commands are what you wrote, type: {}", words.join(" "))
        }
        (_, Run::Later) => "; so the node was not stopped".to_owned(),
        _ => String::new(),
    }
}

//! How a node's process is started, stopped and looked at: one face over the ways there are.
//!
//! When to do which, and whether the node is healthy, is not known here.

use std::{path::PathBuf, time::Duration};

use super::process::process_id::ProcessId;

pub mod command;
pub mod command_error;
pub mod discovery;
pub mod fitness;
pub mod launch;
pub mod process;
pub mod same_node;
mod stop_lock;
pub mod stop_request;
mod stuck;
pub mod systemd;

use command::{CommandError, CommandRuntime};
use discovery::Belief;
use process::{ProcessError, ProcessRuntime};
use systemd::{SystemdError, SystemdRuntime};

/// What was seen of a node's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Running {
        /// Which process it is; `None` when a `command` runtime did not say, or systemd does not know.
        process: Option<Process>,
    },
    /// It does not run.
    Stopped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub identity: ProcessId,
    /// The file it executes, as the kernel knows it; `None` when this agent may not see it.
    pub exe: Option<PathBuf>,
}

/// What was found out of a node's process before its stop. The ways of a stop that go by somebody else's word keep to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// None ran.
    Stopped,
    /// Nothing shows which process it is. The playbook is believed, and none is killed.
    Unknown,
    /// This one showed that it is the node.
    Shown(Judged),
}

/// Whether a node that was told to stop, and runs by its `status` alone, can be what it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listens {
    /// Somebody listens at its address, or nobody has looked.
    #[default]
    Perhaps,
    /// Nobody of this host listens at its address, which is this host's.
    Nowhere,
}

/// A process that showed that it is the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The one that was named as its process.
    pub named: ProcessId,
    /// The one that showed that it is the node: that one, or one that it has started.
    pub node: ProcessId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// What was seen of it then.
    pub status: Status,
    /// Whether this start made it run; one that ran already was left as it is.
    pub is_new: bool,
    /// What could not be done as it should be, and was no reason to leave the node down.
    pub warnings: Vec<String>,
}

impl Started {
    fn found(status: Status) -> Self {
        Self { status, is_new: false, warnings: Vec::new() }
    }

    fn new(status: Status) -> Self {
        Self { status, is_new: true, warnings: Vec::new() }
    }
}

#[derive(Clone, Debug)]
pub enum Runtime {
    /// The agent starts the node itself.
    Process(ProcessRuntime),
    /// The operator's own commands do.
    Command(CommandRuntime),
    Systemd(SystemdRuntime),
}

/// Why a runtime could not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// Of the agent's own processes.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Of the operator's commands.
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Systemd(#[from] SystemdError),
}

impl RuntimeError {
    /// Whether it is of a stop after which the node still ran. systemd remembers its own.
    pub fn is_of_one_that_was_told(&self) -> bool {
        use CommandError::{Exec, Failed, NotKilled, StillRunning};
        match self {
            Self::Process(error) => matches!(error, ProcessError::StillRunning { .. }),
            Self::Command(Exec { what: "stop", source, .. }) => source.was_run(),
            Self::Command(error) => {
                matches!(error, Failed { what: "stop", .. } | NotKilled { .. } | StillRunning { .. })
            }
            Self::Systemd(_) => false,
        }
    }
}

impl Runtime {
    /// As [`Runtime::status`], and leaves no file behind.
    pub async fn peek(&self) -> Result<Status, RuntimeError> {
        Ok(match self {
            Self::Process(runtime) => runtime.peek().await?,
            Self::Command(runtime) => runtime.peek().await?,
            Self::Systemd(runtime) => runtime.peek().await?,
        })
    }

    /// What a person wants to know of a node that answers though it is not found: what looks most like it.
    pub fn nearest(&self) -> Option<String> {
        match self {
            Self::Process(runtime) => discovery::nearest(runtime.command()).ok().flatten(),
            Self::Command(_) => Some("its `status` must exit 0 as long as it runs".into()),
            Self::Systemd(runtime) => Some(format!("`systemctl status {}` must show its process", runtime.unit)),
        }
    }

    /// Starts the node; one that runs already is left as it is. What is returned was seen afterwards: whether it
    /// runs, not whether it is healthy.
    pub async fn start(&self) -> Result<Started, RuntimeError> {
        Ok(match self {
            Self::Process(runtime) => runtime.start().await?,
            Self::Command(runtime) => runtime.start().await?,
            Self::Systemd(runtime) => runtime.start().await?,
        })
    }

    /// Says what this agent takes for the node from now on, where it can be mistaken in that.
    pub fn believe(&mut self, belief: Belief) {
        match self {
            Self::Process(runtime) => *runtime = runtime.clone().believing(belief),
            Self::Command(_) | Self::Systemd(_) => {}
        }
    }

    /// As [`Runtime::start`], for a node that an agent has stopped: neither what only looks like it nor its log keeps it
    /// down.
    pub async fn start_stopped(&self, listens: Listens) -> Result<Started, RuntimeError> {
        match self {
            Self::Process(runtime) => Ok(runtime.start_stopped().await?),
            Self::Command(runtime) => Ok(runtime.start_stopped(listens).await?),
            Self::Systemd(_) => self.start().await,
        }
    }

    /// A process that looks like a node that this agent has stopped, and that it has not started.
    pub async fn lookalike(&self) -> Option<ProcessId> {
        match self {
            Self::Process(runtime) => runtime.lookalike().await,
            // Their supervisors say which it is.
            Self::Command(_) | Self::Systemd(_) => None,
        }
    }

    /// Refuses a second process that can only be this node: once the node is stopped nobody could tell which one it was.
    pub fn check_alone(&self, status: &Status) -> Result<(), ProcessError> {
        match (self, status.process()) {
            (Self::Process(runtime), Some(node)) => runtime.check_alone(node),
            _ => Ok(()),
        }
    }

    /// Stops the node and waits until it has ended; one that is stopped is left as it is. Over the time limit it is
    /// killed if `kill` says so, else it runs on and that is the error. Where operators' commands say which process it is,
    /// none but the one that was found is killed.
    pub async fn stop(&self, limit: Duration, kill: bool, found: Found) -> Result<(), RuntimeError> {
        match self {
            Self::Process(runtime) => runtime.stop(limit, kill).await?,
            Self::Command(runtime) => runtime.stop(limit, kill, found).await?,
            Self::Systemd(runtime) => runtime.stop(limit, kill).await?,
        }
        Ok(())
    }

    /// Whether the node runs, and as which process.
    pub async fn status(&self) -> Result<Status, RuntimeError> {
        Ok(match self {
            Self::Process(runtime) => runtime.status().await?,
            Self::Command(runtime) => runtime.status().await?,
            Self::Systemd(runtime) => runtime.status().await?,
        })
    }

    /// What its supervisor still waits for of a node that runs, if that is known.
    pub async fn unfinished(&self) -> Option<String> {
        match self {
            Self::Process(_) | Self::Command(_) => None,
            Self::Systemd(runtime) => runtime.unfinished().await.ok().flatten(),
        }
    }

    /// How a node ended that does not run, if that is known.
    pub async fn ending(&self) -> Option<String> {
        match self {
            Self::Process(runtime) => runtime.ending(),
            Self::Command(_) => None,
            Self::Systemd(runtime) => runtime.ending().await.ok(),
        }
    }

    /// Where the node's log is, or what stands for it, and what that says last.
    pub async fn last_words(&self) -> String {
        match self {
            Self::Process(runtime) => runtime.last_words().await,
            Self::Command(runtime) => runtime.last_words().await,
            Self::Systemd(runtime) => runtime.last_words().await,
        }
    }
}

impl Status {
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }

    /// The process, where it runs and is known.
    pub fn process(&self) -> Option<&Process> {
        match self {
            Self::Running { process } => process.as_ref(),
            Self::Stopped => None,
        }
    }
}

//! Why an act could not be done on this host. The rollout machine and the run's mark get its words alone.

use std::sync::Arc;

use crate::{
    event::trouble::Trouble,
    host::{
        files::{SwitchError as FilesError, durable::FileError},
        program::{
            capabilities::NotTakenOver, exec::ExecError, executable::ExecutableError, hook::HookError,
            path_owner::PathOwnerError,
        },
        release::{artifact::ArtifactError, release_record::RecordError, switch::SwitchError},
        runtime::{RuntimeError, fitness::Unfit, process::ProcessError, systemd::SystemdError},
    },
    observe::ObserveError,
    playbook::{Clash, TemplateError},
    words::with_causes,
};

/// What went wrong, or what is not as the step needs it. Its words have the causes.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// Something of this host is not as the step needs it.
    #[error("{0}")]
    Unfit(String),
    /// A reason of its own ends the run.
    #[error("this host is not fit for the step")]
    Trouble(Trouble),
    #[error("{}", with_causes(.0))]
    Artifact(#[from] ArtifactError),
    #[error("{}", with_causes(.0))]
    Capabilities(#[from] NotTakenOver),
    #[error("{}", with_causes(.0))]
    Fitness(#[from] Unfit),
    #[error("{}", with_causes(.0))]
    Clash(#[from] Clash),
    #[error("{}", with_causes(.0))]
    Exec(#[from] ExecError),
    #[error("{}", with_causes(.0))]
    Executable(#[from] ExecutableError),
    #[error("{}", with_causes(.0))]
    File(#[from] FileError),
    #[error("{}", with_causes(.0))]
    Files(#[from] FilesError),
    #[error("{}", with_causes(.0))]
    Hook(#[from] HookError),
    #[error("{}", with_causes(.0))]
    Io(#[from] std::io::Error),
    #[error("{}", with_causes(.0))]
    Observe(#[from] ObserveError),
    #[error("{}", with_causes(.0))]
    Owner(#[from] PathOwnerError),
    #[error("{}", with_causes(.0))]
    Process(#[from] ProcessError),
    #[error("{}", with_causes(.0))]
    Record(#[from] RecordError),
    #[error("{}", with_causes(.0))]
    Runtime(Box<RuntimeError>),
    #[error("{}", with_causes(.0))]
    Switch(#[from] SwitchError),
    #[error("{}", with_causes(.0))]
    Systemd(Box<SystemdError>),
    #[error("{}", with_causes(.0))]
    Template(#[from] TemplateError),
}

impl From<RuntimeError> for ActError {
    fn from(error: RuntimeError) -> Self {
        Self::Runtime(Box::new(error))
    }
}

impl From<SystemdError> for ActError {
    fn from(error: SystemdError) -> Self {
        Self::Systemd(Box::new(error))
    }
}

impl From<String> for ActError {
    fn from(text: String) -> Self {
        Self::Unfit(text)
    }
}

impl From<&str> for ActError {
    fn from(text: &str) -> Self {
        Self::Unfit(text.into())
    }
}

impl From<ActError> for Arc<str> {
    fn from(error: ActError) -> Self {
        error.to_string().into()
    }
}

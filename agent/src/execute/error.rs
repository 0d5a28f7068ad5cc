//! Why an act could not be done on this host. The rollout machine and the run's mark get its words alone.

use std::{str::FromStr, sync::Arc};

use super::{data_dir::DataDirError, restore::PlaceError};
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

/// What went wrong, or what is not as the step needs it. Its words have the causes, which stay typed beside them.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// Something of this host is not as the step needs it, and no error below says so.
    #[error("{0}")]
    Unfit(String),
    /// A reason of its own ends the run.
    #[error("this host is not fit for the step")]
    Trouble(Trouble),
    #[error("`artifact.source` is no address: {0}")]
    Address(#[source] <reqwest::Url as FromStr>::Err),
    #[error("{}", with_causes(.0))]
    Artifact(#[from] ArtifactError),
    #[error("{}", with_causes(.0))]
    Capabilities(#[from] NotTakenOver),
    #[error("{}", with_causes(.0))]
    Fitness(#[from] Unfit),
    #[error("{}", with_causes(.0))]
    Clash(#[from] Clash),
    #[error("{}", with_causes(.0))]
    DataDir(#[from] DataDirError),
    /// It has begun once, so that an empty directory is none that it was told to begin with.
    #[error("the data of {node} is gone, or its log, and a member does not begin anew")]
    DataGone { node: String },
    /// The releases say that it is likely to hurt, or what the member has: then by which it is shown, behind its name.
    #[error("{node}: {id}, see `agent hazards --explain {id}`")]
    KnownHazard { node: String, id: &'static str, shown: String },
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
    /// A file that an earlier step failed to put back.
    #[error("{node}: {}", with_causes(.source))]
    NotPutBack { node: String, source: FilesError },
    #[error("{}", with_causes(.0))]
    Observe(#[from] ObserveError),
    #[error("{}", with_causes(.0))]
    Owner(#[from] PathOwnerError),
    #[error("{}", with_causes(.0))]
    Place(#[from] PlaceError),
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

impl ActError {
    /// What has a reason of its own.
    pub(super) fn into_trouble(self) -> Option<Trouble> {
        match self {
            Self::Trouble(trouble) => Some(trouble),
            Self::KnownHazard { node, id, shown } => Some(Trouble::KnownHazard { name: node, id, shown }),
            Self::DataGone { node } => Some(Trouble::DataGone { name: node, lock: None }),
            _ => None,
        }
    }
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

#[cfg(test)]
mod tests {
    use std::{error::Error, io};

    use proto::ClusterVersion;

    use super::*;
    use crate::{execute::setup::SetupError, guarded::At, host::files::data_dir::NoRoom};

    type IsCaused = fn(&(dyn Error + 'static)) -> bool;

    /// Whether an error of this type is among its causes.
    fn is_caused_by<E: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
        std::iter::successors(Some(error), |error| (*error).source()).any(|error| error.is::<E>())
    }

    #[test]
    fn causes_stay_typed_and_are_said_once() {
        let of_m1 = |why: ActError| SetupError::of_node("m1")(why);
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let is_io = is_caused_by::<io::Error>;
        let version = |minor| ClusterVersion { major: 3, minor };
        let node = || "m1".to_owned();
        let checks: [(ActError, IsCaused, &str); 5] = [
            (
                DataDirError::NoRoom { node: node(), source: NoRoom { free: 1, wanted: 2 } }.into(),
                is_caused_by::<NoRoom>,
                "m1: too little room: 0 MB are free",
            ),
            (
                DataDirError::OldLog { node: node(), old: version(6), new: version(7) }.into(),
                is_caused_by::<DataDirError>,
                "m1: its data directory has no snapshot",
            ),
            (
                Err::<(), _>(denied()).at("look at", "/x".as_ref()).unwrap_err().into(),
                is_io,
                "cannot look at /x: permission",
            ),
            (
                ActError::Address("http://[".parse::<reqwest::Url>().unwrap_err()),
                is_caused_by::<<reqwest::Url as FromStr>::Err>,
                "`artifact.source` is no address: ",
            ),
            (
                ActError::NotPutBack {
                    node: node(),
                    source: FilesError::StillSwitched { path: "/y".into(), saved: None },
                },
                is_caused_by::<FilesError>,
                "m1: /y was not put back",
            ),
        ];
        for (error, is_caused, words) in checks {
            let text = error.to_string();
            assert!(text.starts_with(words) && is_caused(&error), "{text}");
            let of_node = of_m1(error);
            assert_eq!(with_causes(&of_node), format!("m1: {text}"));
            assert!(is_caused(&of_node), "{text}");
        }
    }
}

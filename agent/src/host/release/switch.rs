//! How a member is brought from one installed release to another while it is down: the other half of its runtime, which
//! stops and starts it.
//!
//! Here is what leads to the executable; the member's files are in `host/files/`.

use std::path::{Path, PathBuf};

use super::link::{Link, LinkError};
use crate::host::program::path_owner::{self, PathOwnerError, Writers};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switch {
    /// The playbook's `binary`, a symlink to the executable.
    Link(Link),
    /// Nothing: the playbook has no `binary`, and each member keeps the release it has.
    Nothing,
}

/// Why it cannot be switched.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Somebody else may change what it would lead to.
    #[error(transparent)]
    Owner(#[from] PathOwnerError),
}

impl Switch {
    /// Of a playbook's `binary`.
    ///
    /// # Errors
    /// It is there and no symlink.
    pub fn open(binary: Option<&Path>) -> Result<Self, SwitchError> {
        Ok(binary.map(Link::open).transpose()?.map_or(Self::Nothing, Self::Link))
    }

    /// What leads to the executable.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Link(link) => Some(link.link()),
            Self::Nothing => None,
        }
    }

    /// Where releases are unpacked, beside the link.
    pub fn releases(&self) -> Option<PathBuf> {
        match self {
            Self::Link(link) => Some(link.releases()),
            Self::Nothing => None,
        }
    }

    /// The executable that the member is set to run now; `None` where nothing is switched.
    ///
    /// # Errors
    /// What leads there is missing, or leads nowhere.
    pub fn current(&self) -> Result<Option<PathBuf>, SwitchError> {
        match self {
            Self::Link(link) => Ok(Some(link.current()?)),
            Self::Nothing => Ok(None),
        }
    }

    /// Looks, without changing anything, whether it can be switched, and by nobody else: what is written there as root must
    /// not land elsewhere.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(&self) -> Result<(), SwitchError> {
        match self {
            Self::Link(link) => {
                link.check()?;
                Ok(path_owner::check(link.folder(), &Writers::own())?)
            }
            Self::Nothing => Ok(()),
        }
    }

    /// Does all of it but what would show.
    ///
    /// # Errors
    /// What fails then, with the member still up.
    pub fn rehearse(&self) -> Result<(), SwitchError> {
        match self {
            Self::Link(link) => Ok(link.rehearse()?),
            Self::Nothing => Ok(()),
        }
    }

    /// Makes this executable the member's own. Done again it does nothing more.
    ///
    /// # Errors
    /// It is not there, or could not be made durable.
    pub fn to(&self, executable: &Path) -> Result<(), SwitchError> {
        match self {
            Self::Link(link) => Ok(link.switch(executable)?),
            Self::Nothing => Ok(()),
        }
    }

    /// As [`Switch::to`], only where what is there leads nowhere.
    ///
    /// # Errors
    /// As there.
    pub fn restore(&self, executable: &Path) -> Result<(), SwitchError> {
        match self {
            Self::Link(link) if link.leads_nowhere() => Ok(link.switch(executable)?),
            Self::Link(_) | Self::Nothing => Ok(()),
        }
    }
}

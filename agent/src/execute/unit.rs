//! What a member that is a unit needs of systemd before a step.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{
    error::ActError,
    node::{OwnNode, Side},
    own_data::told_folder,
};
use crate::{
    host::{
        process::{credentials::Credentials, member_setting::variables_of},
        runtime::{
            Runtime,
            systemd::{
                SystemdRuntime,
                check::{Fit, NextStart, Trying},
                environment::Read,
                preflight::Wanted,
            },
        },
    },
    playbook::{self, Strategy},
    regular_file::{self, ReadError},
};

/// How long a file of variables may be, in bytes.
const MAX_FILE: usize = 1 << 20;

impl OwnNode {
    /// Looks whether its unit is fit to be started as this side; gives what is to be known all the same.
    pub async fn check_unit(
        &mut self,
        side: &Side,
        strategy: &Strategy,
        trying: Trying,
    ) -> Result<Vec<String>, ActError> {
        let Fit { warnings, owner } = self.fitness(side, strategy, trying).await?;
        self.unit_owner = owner;
        Ok(warnings.iter().map(ToString::to_string).collect())
    }

    /// The same, right before a stop: a hook may have changed it.
    ///
    /// # Errors
    /// What stands in its way by now.
    pub(super) async fn check_unit_still(&self, side: &Side, strategy: &Strategy) -> Result<(), ActError> {
        self.fitness(side, strategy, Trying::Look).await.map(drop)
    }

    async fn fitness(&self, side: &Side, strategy: &Strategy, trying: Trying) -> Result<Fit, ActError> {
        let Some(unit) = self.unit() else { return Ok(Fit::default()) };
        let wanted = Wanted {
            binary: self.node.binary.clone(),
            is_led_through: false,
            files: self.node.files.iter().map(|file| file.path.clone()).collect(),
            health: strategy.health,
            stop: self.node.stop.timeout,
            kill: self.node.stop.kill,
        };
        unit.check(wanted, &self.needs(side)?, trying).await.map_err(ActError::from)
    }

    /// Gets to know whose its new files are to be. A systemd that does not answer is met again by whatever needs it.
    pub(super) async fn learn_owner(&mut self) {
        if let (Some(unit), None) = (self.unit(), self.unit_owner) {
            self.unit_owner = unit.owner().await.ok().flatten();
        }
    }

    pub(super) async fn unit_runs_as(&self) -> Result<Credentials, ActError> {
        let Some(unit) = self.unit_of_playbook() else { return Ok(Credentials::own()) };
        unit.runs_as().await.map_err(ActError::from)
    }

    /// What its unit's next start is given, with its files as they are put at this side. What a file says that this agent may not read is
    /// taken from the process that runs.
    pub(super) async fn unit_start(&self, side: Option<&Side>) -> Result<Option<NextStart>, ActError> {
        let Some(unit) = self.unit_of_playbook() else { return Ok(None) };
        let process = self.peek().await.ok().and_then(|status| Some(status.process()?.identity.pid));
        let process = process.and_then(|pid| variables_of(pid).ok()).unwrap_or_default();
        let read = |path: &Path| {
            let put = side.and_then(|side| self.put_for(path, side).ok());
            match regular_file::read(put.as_deref().unwrap_or(path), MAX_FILE) {
                Ok(text) => Read::Text(text),
                Err(ReadError::System(error)) if error.kind() == ErrorKind::NotFound => Read::Absent,
                Err(ReadError::NotAFile(_)) => Read::NotAFile,
                Err(_) => Read::Unread,
            }
        };
        unit.next_start(&process, read).await.map(Some).map_err(ActError::from)
    }

    /// The folder that its next start names by this flag, on this host.
    pub(super) async fn folder_told(&self, flag: &str) -> Option<PathBuf> {
        match self.is_unit() {
            true => self.unit_folder(flag).await,
            false => told_folder(&self.node.runtime, flag),
        }
    }

    fn unit_of_playbook(&self) -> Option<SystemdRuntime> {
        let playbook::Runtime::Systemd(systemd) = &self.node.runtime else { return None };
        let (name, unit) = (self.node.name.clone(), systemd.unit.clone());
        Some(SystemdRuntime { name, unit, patience: self.node.stop.timeout })
    }

    pub(super) fn is_unit(&self) -> bool {
        matches!(self.node.runtime, playbook::Runtime::Systemd(_))
    }

    fn unit(&self) -> Option<SystemdRuntime> {
        match &self.runtime {
            Some(Runtime::Systemd(unit)) => Some(unit.clone()),
            _ => None,
        }
    }
}

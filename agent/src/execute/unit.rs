//! What a member that is a unit needs of systemd before a step.

use std::path::{Path, PathBuf};

use super::{
    error::ActError,
    newcomer,
    node::{OwnNode, Side},
    own_data::told_folder,
};
use crate::{
    host::{
        process::{credentials::Credentials, member_setting::configured},
        runtime::{
            Runtime,
            same_node::value,
            systemd::{
                SystemdRuntime,
                check::{Fit, Trying},
                preflight::Wanted,
            },
        },
    },
    playbook::{self, Strategy},
};

impl OwnNode {
    /// Looks whether its unit is fit to be started as this side; gives what is to be known all the same.
    pub async fn check_unit(
        &mut self,
        side: &Side,
        strategy: &Strategy,
        trying: Trying,
    ) -> Result<Vec<String>, ActError> {
        let Some(unit) = self.unit() else { return Ok(Vec::new()) };
        let wanted = Wanted {
            binary: self.node.binary.clone(),
            is_led_through: false,
            files: self.node.files.iter().map(|file| file.path.clone()).collect(),
            health: strategy.health,
            stop: self.node.stop.timeout,
            kill: self.node.stop.kill,
        };
        let checked = unit.check(wanted, &self.needs(side)?, trying).await;
        let Fit { warnings, owner } = checked?;
        self.unit_owner = owner;
        Ok(warnings.iter().map(ToString::to_string).collect())
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

    /// What its unit starts its program with.
    pub(super) async fn unit_arguments(&self) -> Result<Option<Vec<String>>, ActError> {
        let Some(unit) = self.unit_of_playbook() else { return Ok(None) };
        unit.arguments().await.map_err(ActError::from)
    }

    /// The folder that its next start names by this flag: of a unit by its command, or by the configuration file that this names. A variable
    /// of a unit may say it as well, and is not known before it runs.
    pub(super) async fn folder_told(&self, flag: &str) -> Option<PathBuf> {
        if !self.is_unit() {
            return told_folder(&self.node.runtime, flag);
        }
        let arguments = self.unit_arguments().await.ok()??;
        let told = match value(&arguments, "config-file") {
            Some(file) => configured(&newcomer::read(&None, Path::new(file))?, flag)?,
            None => value(&arguments, flag)?.to_owned(),
        };
        Some(PathBuf::from(told)).filter(|folder| folder.is_absolute())
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

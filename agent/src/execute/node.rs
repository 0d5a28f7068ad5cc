//! One member of this host, as the machine's acts see it: its two binaries, its files, its process.
//!
//! Which binary to use when is not decided here. Source: agent/PROTOCOL.md, I-6, I-12.

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
};

use proto::{MemberId, Release};
use serde::{Deserialize, Serialize};

use super::{error::ActError, process::Memory};
use crate::{
    host::{
        files::{self, Saved, state_dir::Layout},
        program::{
            capabilities, executable,
            launcher::{self, NotReadable},
        },
        release::switch::Switch,
        runtime::{
            Runtime, Status,
            command::{CommandRuntime, LastNamed},
            discovery::{Belief, undeleted},
            fitness::Needs,
            launch::NodeCommand,
            process::ProcessRuntime,
            systemd::SystemdRuntime,
        },
    },
    journal::restart::Binary,
    playbook::{self, Node},
};

/// One of the two things a member may run in a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    pub release: Release,
    /// The executable that `binary` points to; `None` where the playbook has no `binary`.
    pub executable: Option<PathBuf>,
}

/// Both of them: what the member ran before the step, and what the step brings it to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sides {
    pub old: Side,
    pub new: Side,
    /// The playbook's `binary` when the step began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<PathBuf>,
}

impl Sides {
    pub fn side(&self, which: Binary) -> &Side {
        match which {
            Binary::Old => &self.old,
            Binary::New => &self.new,
        }
    }
}

/// The release of a member that nobody could ask.
const UNKNOWN: Release = Release(semver::Version::new(0, 0, 0));

#[derive(Debug)]
pub struct OwnNode {
    /// What the playbook says of it.
    pub node: Node,
    pub member: MemberId,
    pub(super) switch: Switch,
    pub(super) nodes: PathBuf,
    pub(super) saved: Saved,
    /// Both sides, once they are known.
    pub sides: Option<Sides>,
    /// The release that the member itself reported, for a node whose playbook has no `binary` to ask.
    pub reported: Option<Release>,
    /// The process to look for: as the release that it has now is started.
    pub runtime: Option<Runtime>,
    /// What this agent takes for its process.
    pub(super) belief: Belief,
    /// Whether its step may have ended its process: this agent has begun to, or an earlier one may have.
    pub(super) may_be_stopped: bool,
    pub(super) memory: Mutex<Memory>,
    /// What its `status` has named, where it has one.
    last_named: LastNamed,
    /// User and group of its unit, where it is one and runs as somebody else.
    pub(super) unit_owner: Option<(u32, u32)>,
}

impl OwnNode {
    /// Opens its link; nothing is run yet.
    pub fn open(node: &Node, member: MemberId, state: &Layout, sides: Option<Sides>) -> Result<Self, ActError> {
        let switch = Switch::open(node.binary.as_deref())?;
        let saved = Saved::new(state.saved_files().join(&node.name));
        let (node, nodes) = (node.clone(), state.nodes());
        let belief = Belief::default();
        Ok(Self {
            node,
            member,
            switch,
            nodes,
            saved,
            sides,
            reported: None,
            runtime: None,
            belief,
            may_be_stopped: false,
            memory: Mutex::default(),
            last_named: LastNamed::default(),
            unit_owner: None,
        })
    }

    /// Where releases lie, beside the link.
    pub fn releases(&self) -> Option<PathBuf> {
        self.switch.releases()
    }

    /// What it is set to run now.
    pub async fn current(&self) -> Result<Side, ActError> {
        match self.executable()? {
            Some(executable) => Ok(Side { release: self.release_of(&executable).await?, executable: Some(executable) }),
            None => Ok(Side { release: self.release_without_link().await, executable: None }),
        }
    }

    /// The program that it is set to run now; `None` without `binary`.
    pub fn executable(&self) -> Result<Option<PathBuf>, ActError> {
        self.switch.current().map_err(ActError::from)
    }

    /// Whether its release can only be had from the member.
    pub fn needs_report(&self) -> bool {
        self.switch == Switch::Nothing
    }

    /// Without `binary` nothing is switched, and the release chooses `files` and `args` by their `for:` and stands for
    /// `{{version}}`: that of the program where the playbook names one, else what the member reported, now or when
    /// the step in hand began. Where none is known, as for a member that was down all along, it is 0.0.0.
    async fn release_without_link(&self) -> Release {
        let program = match &self.node.runtime {
            playbook::Runtime::Process(process) => process.argv.first().map(PathBuf::from),
            playbook::Runtime::Command(_) | playbook::Runtime::Systemd(_) => None,
        };
        let asked = match program {
            Some(program) => self.asked(&program).await.ok(),
            None => None,
        };
        let planned = || self.sides.as_ref().map(|sides| sides.new.release.clone());
        asked.or_else(|| self.reported.clone()).or_else(planned).unwrap_or(UNKNOWN)
    }

    /// Refuses a release that nobody knows where something is chosen by it: it would be chosen wrongly and silently.
    pub fn check_release(&self, side: &Side) -> Result<(), ActError> {
        match side.release == UNKNOWN && self.node.depends_on_release() {
            false => Ok(()),
            true => Err(ActError::from(format!(
                "{}: its release is not known, as it does not answer and has no `binary`, but `for` or \
                 {{{{version}}}} goes by it; start it, or give it a `binary`",
                self.node.name
            ))),
        }
    }

    /// Refuses a process that runs another executable than `binary` leads to, as after a switch by hand: the way back
    /// would lead to something that was not running.
    pub fn check_what_runs(&self, status: &Status) -> Result<(), ActError> {
        let Some(named) = self.executable()? else {
            return Ok(());
        };
        let Some(runs) = status.process().and_then(|process| process.exe.as_ref()) else { return Ok(()) };
        match std::fs::canonicalize(runs).unwrap_or_else(|_| runs.clone()) == named {
            true => Ok(()),
            false => Err(ActError::from(format!(
                "{}: its process runs {}, but `binary` leads to {}; {}",
                self.node.name,
                undeleted(runs.clone()).display(),
                named.display(),
                match undeleted(runs.clone()) == *runs {
                    true => "point `binary` to what runs, or restart the member",
                    false => "what runs was replaced or removed since it was started; restart the member",
                }
            ))),
        }
    }

    /// Gets to know the process as it is started at the release it has now.
    pub async fn look_up(&mut self) -> Result<(), ActError> {
        let current = match self.current().await {
            Ok(current) => current,
            Err(why) => self.known().ok_or(why)?,
        };
        self.look_up_at(&current).await
    }

    /// As [`OwnNode::look_up`], with what it is set to run now.
    pub(super) async fn look_up_at(&mut self, current: &Side) -> Result<(), ActError> {
        self.runtime = Some(self.runtime_at(current)?);
        self.learn_owner().await;
        Ok(())
    }

    fn runtime_at(&self, side: &Side) -> Result<Runtime, ActError> {
        let context = self.node.context(&side.release);
        let expand = |argv: &[String]| playbook::expand_all(argv, &context).map_err(ActError::from);
        match &self.node.runtime {
            playbook::Runtime::Process(process) => {
                let command = NodeCommand {
                    name: self.node.name.clone(),
                    argv: process.command_line(&context)?,
                    also_as: self.other_command_lines(process, side),
                    env: process.environment(&context)?.into_iter().collect(),
                    cwd: process.cwd.clone(),
                    user: process.user.clone(),
                    log: process.log.clone(),
                    binary: self.node.binary.clone(),
                };
                Ok(Runtime::Process(ProcessRuntime::new(command, self.nodes.clone()).believing(self.belief)))
            }
            playbook::Runtime::Command(command) => Ok(Runtime::Command(CommandRuntime {
                name: self.node.name.clone(),
                start: expand(&command.start)?,
                stop: expand(&command.stop)?,
                status: expand(&command.status)?,
                patience: self.node.stop.timeout,
                nodes: self.nodes.clone(),
                last_named: self.last_named.clone(),
            })),
            playbook::Runtime::Systemd(systemd) => Ok(Runtime::Systemd(SystemdRuntime {
                name: self.node.name.clone(),
                unit: systemd.unit.clone(),
                patience: self.node.stop.timeout,
            })),
        }
    }

    /// Looks for what its runtime needs to start it as this one: what is missing then would be missed after the stop.
    pub async fn check_runtime(&self, side: &Side) -> Result<(), ActError> {
        match self.runtime_at(side)?.check(&self.needs(side)?).await {
            Err(unfit) if unfit.field == "log" && self.log_is_to_come() => Ok(()),
            checked => checked.map_err(ActError::from),
        }
    }

    /// Whether its log lies in a state directory that a run makes, and none has yet.
    fn log_is_to_come(&self) -> bool {
        let Some(state_dir) = self.nodes.parent().filter(|folder| !folder.exists()) else { return false };
        matches!(&self.node.runtime, playbook::Runtime::Process(process) if process.log.parent() == Some(state_dir))
    }

    pub(super) fn needs(&self, side: &Side) -> Result<Needs, ActError> {
        let files = self.files_for(&side.release)?;
        let new = files.iter().filter(|file| !file.path.exists());
        let folders = new.filter_map(|file| Some(file.path.parent()?.to_owned())).collect();
        Ok(Needs { executable: side.executable.clone(), folders })
    }

    /// A process that an earlier release's arguments started is this node's all the same.
    fn other_command_lines(&self, process: &playbook::Process, side: &Side) -> Vec<Vec<String>> {
        let releases = self.sides.iter().flat_map(|sides| [&sides.old.release, &sides.new.release]);
        releases
            .filter(|release| **release != side.release)
            .filter_map(|release| process.command_line(&self.node.context(release)).ok())
            .collect()
    }

    /// Looks for all that the switch to a release, and this one's start, need.
    pub async fn check(&self, current: &Side, to: &Release) -> Result<(), ActError> {
        for release in [&current.release, to] {
            files::check(&self.files_for(release)?)?;
        }
        if let Some(executable) = &current.executable {
            executable::check(executable)?;
        }
        if current.release != *to {
            self.switch.check()?;
        }
        self.check_release(current)?;
        self.check_runtime(current).await
    }

    /// Tries the switch from one side to the other up to where it would show: what fails then, fails with the member up.
    pub async fn rehearse(&self, sides: &Sides) -> Result<(), ActError> {
        let tried = async |old: Option<&Path>, new: &Path| self.try_switched(old, new).await;
        files::rehearse(&self.files_for(&sides.new.release)?, tried).await?;
        match sides.old.executable == sides.new.executable {
            true => Ok(()),
            false => self.switch.rehearse().map_err(ActError::from),
        }
    }

    /// Refuses a new executable that may less than the old one by its file.
    pub fn check_capabilities(&self, sides: &Sides) -> Result<(), ActError> {
        match (&sides.old.executable, &sides.new.executable) {
            (Some(old), Some(new)) => capabilities::check(old, new).map_err(ActError::from),
            _ => Ok(()),
        }
    }

    /// As [`OwnNode::check_capabilities`], for who only looks: a release that is not unpacked yet will have none.
    pub fn look_at_capabilities(
        &self,
        current: &Side,
        to: &Release,
        new: Option<&Path>,
    ) -> Result<Option<String>, ActError> {
        let Some(old) = current.executable.as_deref().filter(|_| current.release != *to) else { return Ok(None) };
        match new.filter(|new| self.releases().is_some_and(|releases| new.starts_with(releases))) {
            Some(new) => capabilities::check(old, new).map(|()| None).map_err(ActError::from),
            None => Ok(capabilities::warning(old)),
        }
    }

    /// Has the node's user try what a switched file is to be.
    async fn try_switched(&self, old: Option<&Path>, new: &Path) -> Result<(), NotReadable> {
        let user = match &self.node.runtime {
            playbook::Runtime::Process(process) => process.user.clone(),
            // What a command does as whom is not known.
            playbook::Runtime::Command(_) => None,
            playbook::Runtime::Systemd(_) => self.unit_owner.and_then(|(user, _)| launcher::user_name(user)),
        };
        match user.filter(|user| launcher::other_user(user).is_some()) {
            Some(user) => launcher::try_switched(user, old, new).await,
            None => Ok(()),
        }
    }

    /// Refuses another `binary` than the one that the step in hand began with: the member would be started through the one, and
    /// the other switched.
    pub fn check_begun(&self) -> Result<(), ActError> {
        let (Some(begun), Some(now)) =
            (self.sides.as_ref().and_then(|sides| sides.binary.as_ref()), self.node.binary.as_ref())
        else {
            return Ok(());
        };
        match begun == now {
            true => Ok(()),
            false => Err(ActError::from(format!(
                "a step is in hand that began with `binary: {}`, and the playbook says {} now; end that step first, with the \
                 same command and `binary` as it was",
                begun.display(),
                now.display()
            ))),
        }
    }

    /// Makes a link that leads nowhere again as the step in hand has it: without it its member could not be started.
    pub fn restore_link(&self, to: Binary) -> Result<(), ActError> {
        let executable = self.sides.as_ref().and_then(|sides| sides.side(to).executable.as_deref());
        executable.map_or(Ok(()), |executable| self.switch.restore(executable).map_err(ActError::from))
    }
}

#[cfg(test)]
#[path = "node_test.rs"]
mod tests;

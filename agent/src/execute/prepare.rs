//! What this host must have before it may take the baton: the new release in place and checked, the way back
//! known, files and users as they must be (ARCHITECTURE.md, "Preflight").

use std::sync::Arc;

use proto::Release;

use super::{
    Execution, Why,
    node::{Side, Sides},
    why,
};
use crate::{
    host::{artifact, cgroup, executable, files},
    plan::Verb,
    playbook::{self, Kind},
    report::stop::Trouble,
};

impl Execution<'_> {
    pub(super) async fn prepare(&mut self) -> Result<(), Why> {
        let interrupt = self.interrupt.clone();
        tokio::select! {
            prepared = self.prepare_all() => prepared,
            () = interrupt.asked(1) => Err(Arc::from("interrupted")),
        }
    }

    async fn prepare_all(&mut self) -> Result<(), Why> {
        self.judge_cgroup().await?;
        self.judge_access().await?;
        for at in 0..self.nodes.len() {
            let sides = self.sides(at).await?;
            let node = &mut self.nodes[at];
            for release in [&sides.old.release, &sides.new.release] {
                files::check(&node.files_for(release)?).map_err(|error| why(&error))?;
            }
            if let Some(executable) = &sides.old.executable {
                executable::check(executable).map_err(|error| why(&error))?;
            }
            node.sides = Some(sides);
            node.look_up().await?;
        }
        Ok(())
    }

    /// What the member ran before and is to run after.
    async fn sides(&mut self, at: usize) -> Result<Sides, Why> {
        let current = self.nodes[at].current().await?;
        let Kind::Upgrade { from, to, artifact } = self.playbook.kind.clone() else {
            return Ok(Sides { old: current.clone(), new: current });
        };
        let known = self.nodes[at].sides.clone().filter(|sides| sides.new.release == to);
        let new = match (&known, self.me.verb) {
            (Some(sides), Verb::Rollback) => sides.new.clone(),
            (None, Verb::Rollback) if current.release == to => current.clone(),
            _ => self.install(at, &to, &artifact).await?,
        };
        if current.executable != new.executable {
            return Ok(Sides { old: current, new });
        }
        let previous = match known {
            Some(sides) if sides.old.executable != new.executable => Some(sides.old),
            _ => self.nodes[at].previous(&from).await,
        };
        match (previous, self.me.verb) {
            (Some(old), _) => Ok(Sides { old, new }),
            (None, Verb::Rollback) => Err(Arc::from(format!(
                "{}: no release that `from` allows lies beside {}, so there is nothing to go back to",
                self.nodes[at].node.name,
                self.nodes[at].node.binary.as_ref().map_or(String::new(), |binary| binary.display().to_string())
            ))),
            (None, _) => Ok(Sides { old: current, new }),
        }
    }

    async fn install(&mut self, at: usize, to: &Release, artifact: &playbook::Artifact) -> Result<Side, Why> {
        let Some(releases) = self.nodes[at].releases() else { return Err(Arc::from("`binary` is missing")) };
        let artifact = artifact::Artifact {
            release: to.clone(),
            source: source(&artifact.source)?,
            sha256: artifact.source.sha256().map(|sha256| crate::host::digest::Sha256(sha256.0)),
            executable: artifact.executable.clone(),
        };
        let progress = |done: u64, all: Option<u64>| tracing::debug!(done, all, "downloading");
        let downloads = self.state.downloads();
        let installed =
            artifact::install(&artifact, &releases, &downloads, &progress).await.map_err(|error| why(&error))?;
        executable::check(&installed.executable).map_err(|error| why(&error))?;
        let found = executable::release(&installed.executable).await.map_err(|error| why(&error))?;
        match found == *to {
            true => Ok(Side { release: found, executable: Some(installed.executable) }),
            false => Err(Arc::from(format!(
                "the artifact is {found}, as {} --version says, and not {to}",
                installed.executable.display()
            ))),
        }
    }

    async fn judge_cgroup(&mut self) -> Result<(), Why> {
        let is_process = |node: &super::OwnNode| matches!(node.node.runtime, playbook::Runtime::Process(_));
        if !self.nodes.iter().any(is_process) {
            return Ok(());
        }
        match cgroup::judge_own().await {
            cgroup::Judgement::Safe => Ok(()),
            cgroup::Judgement::UntilLogout { unit } => {
                self.warn(&format!("nodes of the process runtime live in {unit} and end with the login session"));
                Ok(())
            }
            cgroup::Judgement::Killed { unit, why } => Err(Arc::from(format!(
                "nodes started here would be killed with {unit}: {why}; run the agent outside it, or under a unit with KillMode=process"
            ))),
        }
    }

    async fn judge_access(&mut self) -> Result<(), Why> {
        if let Some(auth) = &self.playbook.cluster.auth {
            let user = auth.user.clone();
            if !self.observer.is_administrator().await.map_err(|error| why(&error))? {
                return Err(self.in_trouble(Trouble::NotRoot { user }));
            }
        }
        if self.playbook.gates.expect.is_empty() {
            return Ok(());
        }
        let view = self.observer.glance().await.map_err(|error| why(&error))?;
        match view.members.iter().any(|member| member.report().is_some_and(|report| report.gates.is_none())) {
            false => Ok(()),
            true => {
                let gates = self.playbook.gates.expect.keys().cloned().collect();
                Err(self.in_trouble(Trouble::GatesUnsupported { gates }))
            }
        }
    }

    /// A refusal that has a reason of its own.
    fn in_trouble(&mut self, trouble: Trouble) -> Why {
        self.trouble = Some(trouble);
        Arc::from("this host is not fit for the step")
    }
}

fn source(source: &playbook::Source) -> Result<artifact::Source, Why> {
    match source {
        playbook::Source::Path { path, .. } => Ok(artifact::Source::Path(path.clone())),
        playbook::Source::Url { url, .. } => {
            url.parse().map(artifact::Source::Url).map_err(|error| Arc::from(format!("{url} is no address: {error}")))
        }
    }
}

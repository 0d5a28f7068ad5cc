//! One rollout under watch: clients and the observer at work from before the first agent until after the
//! last one.

use std::{path::PathBuf, time::Duration};

use proto::Release;

use crate::{
    Error,
    agent::Agent,
    cluster::Layout,
    ended::Ended,
    witness::{Testimony, Witness},
    workload::Load,
};

/// How long an agent may take; the longest wait within one is for a lease of 30 s.
pub const LIMIT: Duration = Duration::from_secs(300);

/// A cluster under watch, and the playbook of each of its hosts.
pub struct Rollout {
    /// The cluster.
    pub layout: Layout,
    /// A playbook per host.
    pub playbooks: Vec<PathBuf>,
    /// The release that every member shall run in the end.
    pub to: Release,
    /// Who watches.
    pub witness: Witness,
}

impl Rollout {
    /// Begins to watch; when this returns, clients are at work and no agent is.
    ///
    /// # Errors
    /// The clients get no answers.
    pub async fn begin(layout: &Layout, playbooks: Vec<PathBuf>, to: &Release) -> Result<Self, Error> {
        let witness = Witness::begin(layout, &Load::default(), to.cluster_version()).await?;
        Ok(Self { layout: layout.clone(), playbooks, to: to.clone(), witness })
    }

    /// Starts `agent run` on this host.
    ///
    /// # Errors
    /// There is no agent.
    pub fn start(&self, host: usize) -> Result<Agent, Error> {
        self.start_with(host, &[])
    }

    /// Starts `agent run` on this host, with more arguments.
    ///
    /// # Errors
    /// There is no agent.
    pub fn start_with(&self, host: usize, more: &[&str]) -> Result<Agent, Error> {
        Agent::start("run", &self.playbooks[host], more)
    }

    /// Starts `agent run` on these hosts at once, and waits for all of them.
    ///
    /// # Errors
    /// One does not end within [`LIMIT`].
    pub async fn run(&self, hosts: impl IntoIterator<Item = usize>) -> Result<Vec<Ended>, Error> {
        let agents = hosts.into_iter().map(|host| self.start(host)).collect::<Result<Vec<_>, _>>()?;
        ended(agents).await
    }

    /// Starts `agent run` on every host at once, and waits for all of them.
    ///
    /// # Errors
    /// One does not end within [`LIMIT`].
    pub async fn run_all(&self) -> Result<Vec<Ended>, Error> {
        self.run(0..self.playbooks.len()).await
    }

    /// Ends the watch: the cluster must have got there, with nothing lost on the way.
    ///
    /// # Errors
    /// It has not, or something was broken on the way.
    pub async fn done(self) -> Result<Testimony, Error> {
        self.witness.has_settled().await?;
        let releases = self.layout.releases().await?;
        if releases.iter().any(|release| *release != self.to.to_string()) {
            return Err(format!("the members run {releases:?}").into());
        }
        self.sound().await
    }

    /// Ends the watch, however far the cluster got: nothing must be lost.
    ///
    /// # Errors
    /// Something was broken on the way.
    pub async fn sound(self) -> Result<Testimony, Error> {
        let testimony = self.witness.end().await?;
        testimony.is_sound()?;
        Ok(testimony)
    }
}

/// Waits for all of these to end.
///
/// # Errors
/// One does not within [`LIMIT`].
pub async fn ended(agents: Vec<Agent>) -> Result<Vec<Ended>, Error> {
    let mut ended = Vec::new();
    for agent in agents {
        ended.push(agent.ended(LIMIT).await?);
    }
    Ok(ended)
}

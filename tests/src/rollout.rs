//! One rollout under watch: clients and the observer at work from before the first agent until after the
//! last one.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    path::PathBuf,
    time::Duration,
};

use serde_json::Value;

use crate::{
    agent::Agent,
    case::{Case, sure},
    ended::Ended,
    raft_status::{self, is_of},
    wait,
    witness::{Testimony, Witness},
    workload::Load,
};

/// How long an agent may take, on a loaded machine; the longest wait within one is for a lease of 30 s.
pub const LIMIT: Duration = Duration::from_secs(300);

/// A case under watch, and the playbook of each of its hosts.
pub struct Rollout {
    case: Case,
    /// A playbook per host; to write it again, for another upgrade, leaves it where it is.
    pub playbooks: Vec<PathBuf>,
    pub witness: Witness,
}

impl Deref for Rollout {
    type Target = Case;

    fn deref(&self) -> &Case {
        &self.case
    }
}

impl DerefMut for Rollout {
    fn deref_mut(&mut self) -> &mut Case {
        &mut self.case
    }
}

impl Case {
    /// Begins to watch; when this returns, clients are at work and no agent is.
    pub async fn begin(self) -> Rollout {
        let wanted = self.to.release.cluster_version();
        let witness = sure(Witness::begin(self.layout(), &Load::light(), wanted).await);
        Rollout { playbooks: self.write(), case: self, witness }
    }
}

impl Rollout {
    /// Starts `agent run` on this host.
    pub fn start(&self, host: usize) -> Agent {
        self.start_with("run", host, &[])
    }

    /// Starts `agent VERB` on this host, with more arguments.
    pub fn start_with(&self, verb: &str, host: usize, more: &[&str]) -> Agent {
        sure(Agent::start(verb, &self.playbooks[host], more))
    }

    /// Runs `agent VERB` on this host to its end.
    pub async fn one(&self, verb: &str, host: usize) -> Ended {
        self.start_with(verb, host, &[]).ends().await
    }

    /// Runs `agent VERB` on every host at once, to their ends.
    pub async fn all(&self, verb: &str) -> Vec<Ended> {
        all_end((0..self.hosts.len()).map(|host| self.start_with(verb, host, &[]))).await
    }

    /// Runs `agent run` on every host at once, to their ends; none is left out, however late it comes.
    pub async fn together(&mut self) -> Vec<Ended> {
        self.upgrade.everybody_comes();
        self.write();
        self.all("run").await
    }

    /// Runs `agent run` on these hosts at once, to their ends.
    pub async fn run(&self, hosts: impl IntoIterator<Item = usize>) -> Vec<Ended> {
        all_end(hosts.into_iter().map(|host| self.start(host))).await
    }

    /// Waits until the keys that agents share are as wanted.
    pub async fn until_keys<T>(&self, what: &str, wanted: impl Fn(&BTreeMap<String, Value>) -> Option<T>) -> T {
        let found = wait::until(what, LIMIT, || async {
            let keys = raft_status::keys(self.layout()).await.map_err(|error| error.to_string())?;
            wanted(&keys).ok_or_else(|| format!("{keys:?}"))
        });
        sure(found.await)
    }

    /// Waits until this agent has the baton in its hand.
    pub async fn until_baton_is_of(&self, agent: &Agent) {
        self.until_keys("it to hold the baton", |keys| is_of(keys.get("baton"), agent).then_some(())).await;
    }

    /// The cluster must get there: every member runs the new release, and knows the new cluster version.
    pub async fn arrives(&self) {
        sure(self.witness.has_settled().await);
        assert_eq!(self.releases().await, vec![self.to.release.to_string(); self.layout().members.len()]);
    }

    /// Ends the watch: the cluster must have got there, with nothing lost on the way, and never more than one
    /// member down.
    pub async fn done(self) -> Testimony {
        self.arrives().await;
        self.end(1).await
    }

    /// Ends the watch, however far the cluster got: nothing may be lost, and never may more than `down` members
    /// have been down at once.
    pub async fn end(self, down: usize) -> Testimony {
        let testimony = sure(self.witness.end().await);
        sure(testimony.is_sound(down));
        testimony
    }
}

/// An agent whose end a scenario waits for.
pub trait Ends {
    /// Waits for its end, which must come within [`LIMIT`].
    fn ends(self) -> impl Future<Output = Ended>;
}

impl Ends for Agent {
    async fn ends(self) -> Ended {
        sure(self.ended(LIMIT).await)
    }
}

/// Waits for the ends of agents that were started at once.
pub async fn all_end(agents: impl IntoIterator<Item = Agent>) -> Vec<Ended> {
    let started: Vec<_> = agents.into_iter().collect();
    let mut ended = Vec::new();
    for agent in started {
        ended.push(agent.ends().await);
    }
    ended
}

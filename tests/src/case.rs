//! A cluster, and the upgrade that it is to get: what a scenario sets up before anybody watches.
//!
//! Here and in [`crate::rollout`] everything panics with the words of whoever failed: both are for tests alone.

use std::{collections::BTreeMap, fmt::Display, path::PathBuf};

use serde_json::Value;

use crate::{
    client::Client,
    cluster::{Cluster, Layout, Member, Spec},
    playbook::Upgrade,
    raft_status::{self, RaftStatus},
    sick::{self, Illness},
    skip::build_or_skip,
    system::{Build, System},
};

/// A cluster that is up, and what shall become of it.
pub struct Case {
    pub cluster: Cluster,
    pub from: Build,
    /// What every member shall run in the end.
    pub to: Build,
    /// What playbooks are written from.
    pub upgrade: Upgrade,
    /// The members of each host; one each, unless a scenario says otherwise.
    pub hosts: Vec<Vec<usize>>,
}

impl Case {
    /// The main job: three members of a system, to be upgraded by one minor. `None` is a skip.
    pub async fn of(system: System) -> Option<Self> {
        Self::with(system, |_| {}).await
    }

    /// The same for a cluster of another kind.
    pub async fn with(system: System, change: impl FnOnce(&mut Spec)) -> Option<Self> {
        Self::path(system, system.main_job(), change).await
    }

    pub async fn path(system: System, (from, to): (&str, &str), change: impl FnOnce(&mut Spec)) -> Option<Self> {
        let (from, to) = (build_or_skip(system, from)?, build_or_skip(system, to)?);
        let mut spec = Spec::new(from.clone());
        change(&mut spec);
        let cluster = sure(Cluster::up(&spec).await);
        let upgrade = Upgrade::new(&cluster.layout, &to);
        Some(Self { cluster, from, to, upgrade, hosts: (0..spec.size).map(|index| vec![index]).collect() })
    }

    /// By way of these releases. `None` is a skip.
    pub fn over(mut self, minors: &[&str]) -> Option<Self> {
        for minor in minors {
            self.upgrade.between.push(build_or_skip(self.from.system, minor)?);
        }
        Some(self)
    }

    /// With more lines under `strategy`.
    pub fn strategy(mut self, lines: &[&str]) -> Self {
        self.upgrade.strategy.extend(lines.iter().map(ToString::to_string));
        self
    }

    pub fn layout(&self) -> &Layout {
        &self.cluster.layout
    }

    pub fn member(&self, index: usize) -> &Member {
        &self.layout().members[index]
    }

    pub fn client(&self, index: usize) -> Client {
        sure(self.layout().client(self.member(index)))
    }

    pub async fn leader(&self) -> usize {
        let leader = sure(self.layout().leader().await);
        self.layout().members.iter().take_while(|member| member.name != leader.name).count()
    }

    /// The process of each member; `None` for one that is down.
    pub fn pids(&self) -> Vec<Option<i32>> {
        self.layout().members.iter().map(|member| member.process().map(|process| process.pid)).collect()
    }

    /// What each member says it runs.
    pub async fn releases(&self) -> Vec<String> {
        sure(self.layout().versions().await).into_iter().map(|said| said.server).collect()
    }

    /// The cluster version before the upgrade, as members say it.
    pub fn old_version(&self) -> String {
        format!("{}.0", self.from.release.cluster_version())
    }

    /// The cluster version that each member knows.
    pub async fn cluster_versions(&self) -> Vec<String> {
        sure(self.layout().versions().await).into_iter().map(|said| said.cluster).collect()
    }

    /// The keys that agents share, by name.
    pub async fn keys(&self) -> BTreeMap<String, Value> {
        sure(raft_status::keys(self.layout()).await)
    }

    /// Everything that a refusal must leave as it was.
    pub async fn raft_status(&self) -> RaftStatus {
        sure(RaftStatus::of(self.layout()).await)
    }

    /// The upgrade with an artifact that fails in this way; `program` is `sick-member`.
    pub fn sick(&self, program: &str, illness: Illness) -> Upgrade {
        let source = sure(sick::make(program.as_ref(), &self.to, illness, &self.layout().dir.join("sick")));
        Upgrade { source, ..self.upgrade.clone() }
    }

    /// Writes every host's playbook as the upgrade is wanted now.
    pub fn write(&self) -> Vec<PathBuf> {
        (0..self.hosts.len()).map(|host| self.write_one(host, &self.upgrade)).collect()
    }

    /// Writes one host's playbook; another upgrade than the others' may be wanted there.
    pub fn write_one(&self, host: usize, upgrade: &Upgrade) -> PathBuf {
        let members: Vec<_> = self.hosts[host].iter().map(|index| self.member(*index)).collect();
        sure(upgrade.write_host(self.layout(), &members))
    }
}

/// What was wanted, or the words of whoever failed.
#[allow(clippy::panic)]
#[track_caller]
pub(crate) fn sure<T>(done: Result<T, impl Display>) -> T {
    done.unwrap_or_else(|error| panic!("{error}"))
}

//! A cluster under load and under watch while agents work on it: what most scenarios have in common.
//!
//! Everything here panics with the words of whoever failed: it is for tests alone.

use std::{path::Path, time::Duration};

use proto::ClusterVersion;
use serde_json::Value;

use crate::{
    Error,
    agent::Agent,
    client::Client,
    cluster::{Cluster, Layout, Spec},
    ended::Ended,
    etcd::Etcd,
    wait,
    witness::{Testimony, Witness},
    workload::Load,
};

/// Longer than anything that agents do here: going back over a minor alone waits 20 s.
pub const LIMIT: Duration = Duration::from_secs(180);

/// A cluster, and who watches it.
pub struct Scene {
    cluster: Cluster,
    witness: Witness,
}

impl Scene {
    /// Three members of a release, under load; `wanted` is the cluster version to expect in the end.
    ///
    /// # Errors
    /// The cluster does not come up.
    pub async fn set(etcd: &Etcd, wanted: ClusterVersion) -> Result<Self, Error> {
        Self::of(Cluster::up(&Spec::new(etcd.clone())).await?, wanted).await
    }

    /// The same for a cluster that is up.
    ///
    /// # Errors
    /// It does not take writes.
    pub async fn of(cluster: Cluster, wanted: ClusterVersion) -> Result<Self, Error> {
        // A scenario takes a minute: enough is written in it with pauses, too.
        let load = Load { pause: Duration::from_millis(5), ..Load::default() };
        let witness = Witness::begin(&cluster.layout, &load, wanted).await?;
        Ok(Self { cluster, witness })
    }

    /// Where everything is.
    pub fn layout(&self) -> &Layout {
        &self.cluster.layout
    }

    /// Runs one agent to its end.
    ///
    /// # Errors
    /// It does not end.
    pub async fn one(&self, verb: &str, playbook: &Path) -> Result<Ended, Error> {
        Agent::start(verb, playbook, &[])?.ended(LIMIT).await
    }

    /// Runs an agent on each playbook, all at once, to their ends.
    ///
    /// # Errors
    /// One does not end.
    pub async fn all<P: AsRef<Path>>(&self, verb: &str, playbooks: &[P]) -> Result<Vec<Ended>, Error> {
        let started: Result<Vec<_>, _> =
            playbooks.iter().map(|playbook| Agent::start(verb, playbook.as_ref(), &[])).collect();
        let mut ended = Vec::new();
        for agent in started? {
            ended.push(agent.ended(LIMIT).await?);
        }
        Ok(ended)
    }

    /// A client of one member.
    ///
    /// # Errors
    /// Its certificates cannot be read.
    pub fn client(&self, index: usize) -> Result<Client, Error> {
        Client::new(&self.layout().members[index].client_url, &self.layout().access())
    }

    /// What each member says it runs.
    ///
    /// # Errors
    /// One does not answer.
    pub async fn releases(&self) -> Result<Vec<String>, Error> {
        let mut releases = Vec::new();
        for index in 0..self.layout().members.len() {
            releases.push(self.client(index)?.versions().await?.server);
        }
        Ok(releases)
    }

    /// The cluster version that each member knows.
    ///
    /// # Errors
    /// One does not answer.
    pub async fn cluster_versions(&self) -> Result<Vec<String>, Error> {
        let mut versions = Vec::new();
        for index in 0..self.layout().members.len() {
            versions.push(self.client(index)?.versions().await?.cluster);
        }
        Ok(versions)
    }

    /// The process of each member; `None` for one that is down.
    pub fn pids(&self) -> Vec<Option<i32>> {
        self.layout().members.iter().map(|member| member.process().map(|process| process.pid)).collect()
    }

    /// Which member leads.
    ///
    /// # Errors
    /// Nobody says so in time.
    pub async fn leader(&self) -> Result<usize, Error> {
        let leader = wait::until("a leader", wait::GENEROUS, || async {
            for index in 0..self.layout().members.len() {
                let client = self.client(index).map_err(|error| error.to_string())?;
                let Ok(status) = client.status().await else { continue };
                if status.header.is_some_and(|header| header.member_id == status.leader) {
                    return Ok(index);
                }
            }
            Err("no member says that it leads".into())
        });
        Ok(leader.await?)
    }

    /// The id of a member.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn id(&self, index: usize) -> Result<u64, Error> {
        Ok(self.client(index)?.status().await?.header.ok_or("no header")?.member_id)
    }

    /// One of the keys that agents share, as JSON; null where there is none.
    ///
    /// # Errors
    /// No member answers, or it is no JSON.
    pub async fn key(&self, name: &str) -> Result<Value, Error> {
        for index in 0..self.layout().members.len() {
            if let Ok(found) = self.client(index)?.get(&format!("/baton/{name}")).await {
                return Ok(found.map_or(Ok(Value::Null), |kv| serde_json::from_slice(&kv.value))?);
            }
        }
        Err("no member answers".into())
    }

    /// Waits until every member reports the wanted cluster version.
    ///
    /// # Errors
    /// They do not in time.
    pub async fn has_settled(&self) -> Result<(), Error> {
        Ok(self.witness.has_settled().await?)
    }

    /// Ends the watch: nothing may be lost, and never may more than `down` members have been down at once.
    ///
    /// # Errors
    /// Something was, with what was seen.
    pub async fn end(self, down: usize) -> Result<Testimony, Error> {
        let seen = self.witness.end().await?;
        match seen.is_nothing_lost() && seen.observed.max_members_down <= down {
            true => Ok(seen),
            false => {
                Err(format!("lost {:?}, history {:?}, observed {:?}", seen.lost, seen.history, seen.observed).into())
            }
        }
    }
}

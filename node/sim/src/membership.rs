//! Members that come and go, and what they wish, while all else goes wrong.

use std::{collections::BTreeMap, time::Duration};

use node::{
    cluster::{Cluster, gate::Gate, member::Member},
    features::{COMPRESSION, COUNTERS, FIRST_WITH_GATES, Features, LEASE_CHECKPOINT, Overrides, Registry},
};
use proto::{
    MemberId,
    etcdserverpb::{
        MemberAddRequest, MemberPromoteRequest, MemberRemoveRequest, MemberUpdateRequest, cluster_client::ClusterClient,
    },
};
use tokio::time::{sleep, timeout};
use tonic::{Status, transport::Channel};

use crate::{
    decisions::all_want,
    faults::CLIENTS,
    machine::{Machine, PEER_PORT, Role, url},
    network::{HostId, Micros},
    plan::{ADDED, Fault, Whom, Wishes},
    world::World,
};

/// Where members listen for each other.
const PORTS: std::ops::Range<u16> = PEER_PORT..PEER_PORT + 3;
/// Whoever asks for a change tries again for so long, in seconds; nobody else asks meanwhile.
const ASKS_S: u64 = 8;

impl Wishes {
    /// As far as a release knows these names, or has no gates at all: any other does not start with them.
    pub fn overrides(self, registry: Registry) -> Overrides {
        let said =
            [(LEASE_CHECKPOINT, self.lease_checkpoint), (COMPRESSION, self.compression), (COUNTERS, self.counters)];
        let known = said.into_iter().filter(|(name, _)| !registry.has_gates() || registry.get(name).is_some());
        Overrides(known.filter_map(|(name, is_on)| Some((name.to_owned(), is_on?))).collect())
    }

    /// What a learner must wish that is to join.
    fn as_decided(features: &Features) -> Self {
        let [lease_checkpoint, compression, counters] =
            [LEASE_CHECKPOINT, COMPRESSION, COUNTERS].map(|name| features.get(name));
        Self { lease_checkpoint, compression, counters }
    }
}

/// Where a machine is to be reached.
fn port(member: &Member, host: HostId) -> Option<u16> {
    PORTS.into_iter().find(|port| member.peer_urls == [url(host, *port)])
}

/// Nobody new comes in with more than one minor above the cluster version (`Mismatch::Above`).
fn is_let_in(cluster: &Cluster, minor: u64) -> bool {
    cluster.version.is_none_or(|version| minor <= version.minor + 1)
}

/// Who is a member, by machine: no machine is two.
fn members(cluster: &Cluster, hosts: impl Iterator<Item = HostId>) -> BTreeMap<HostId, (MemberId, Role)> {
    let of = |host: HostId| {
        let (id, member) = cluster.members.iter().find(|(_, member)| port(member, host).is_some())?;
        Some((host, (*id, if member.is_learner { Role::Learner } else { Role::Voter })))
    };
    hosts.filter_map(of).collect()
}

impl World {
    /// What the cluster is, by the member that has applied most of it.
    pub(crate) fn cluster(&self) -> Option<Cluster> {
        let all = self.machines.values().filter_map(Machine::member);
        let newest = all.max_by_key(|member| member.read(|state| state.applied))?;
        Some(newest.read(|state| state.cluster.clone())).filter(|cluster| !cluster.members.is_empty())
    }

    fn hosts(&self) -> impl Iterator<Item = HostId> + use<> {
        1..=self.plan.members + ADDED
    }

    fn may_be_asked(&self) -> Option<HostId> {
        self.leader().filter(|_| self.now >= self.asks_until)
    }

    /// Through the leader; what comes of it is seen by who is a member then.
    pub(crate) fn ask<F>(&mut self, what: impl Fn(Channel) -> F + Send + Sync + 'static) -> bool
    where
        F: Future<Output = Result<(), Status>> + Send + 'static,
    {
        let Some(leader) = self.may_be_asked() else { return false };
        self.asks_until = self.now + ASKS_S * 1_000_000 as Micros;
        crate::machine::TURN.set(CLIENTS);
        self.clients.also(leader, move |channel| async move {
            let until_done = async {
                while let Err(status) = what(channel.clone()).await {
                    tracing::debug!(target: "sim", %status, "the members are not changed yet");
                    sleep(Duration::from_millis(500)).await;
                }
            };
            let _ = timeout(Duration::from_secs(ASKS_S - 1), until_done).await;
        });
        false
    }

    pub(crate) fn add(&mut self, is_learner: bool) -> bool {
        let Some(host) = self.hosts().find(|host| !self.machines.contains_key(host)) else { return false };
        if !is_learner {
            if !self.outlasts_a_newcomer(None) || self.may_be_asked().is_none() {
                return false;
            }
            self.expect_voter(host);
        }
        let request = MemberAddRequest { peer_urls: vec![url(host, PEER_PORT)], is_learner };
        self.ask(move |channel| {
            let request = request.clone();
            async move { ClusterClient::new(channel).member_add(request).await.map(drop) }
        })
    }

    pub(crate) fn promote(&mut self) -> bool {
        let learners = |cluster: Cluster| cluster.members.into_iter().find(|(_, member)| member.is_learner);
        let Some((MemberId(id), _)) = self.cluster().and_then(learners) else { return false };
        let request = MemberPromoteRequest { id };
        self.ask(move |channel| async move { ClusterClient::new(channel).member_promote(request).await.map(drop) })
    }

    /// Never one of three that have their disks: one of those may lose it yet.
    pub(crate) fn remove(&mut self, whom: Whom) -> bool {
        let (Some(cluster), Some(host)) = (self.cluster(), self.host(whom)) else { return false };
        let Some((MemberId(id), role)) = members(&cluster, self.hosts()).get(&host).copied() else { return false };
        let is_lost = self.machines[&host].loss.is_some();
        if role == Role::Voter && !is_lost && cluster.voters().count() <= 3 {
            return false;
        }
        let request = MemberRemoveRequest { id };
        self.ask(move |channel| async move { ClusterClient::new(channel).member_remove(request).await.map(drop) })
    }

    /// To the next port.
    pub(crate) fn relocate(&mut self, whom: Whom) -> bool {
        let (Some(cluster), Some(host)) = (self.cluster(), self.host(whom)) else { return false };
        let Some((id, _)) = members(&cluster, self.hosts()).get(&host).copied() else { return false };
        if self.machines[&host].is_joining {
            return false;
        }
        let Some(at) = cluster.members.get(&id).and_then(|member| port(member, host)) else { return false };
        let to = if PORTS.contains(&(at + 1)) { at + 1 } else { PEER_PORT };
        let request = MemberUpdateRequest { id: id.0, peer_urls: vec![url(host, to)] };
        self.ask(move |channel| {
            let request = request.clone();
            async move { ClusterClient::new(channel).member_update(request).await.map(drop) }
        })
    }

    /// Restarts machines where their members are to be reached.
    fn follow_moves(&mut self, cluster: &Cluster, members: &BTreeMap<HostId, (MemberId, Role)>) {
        for (host, (id, _)) in members {
            let to = cluster.members.get(id).and_then(|member| port(member, *host));
            let has_moved =
                |machine: &&mut Machine| !machine.is_joining && to.is_some_and(|to| to != machine.peer_port);
            if let (Some(machine), Some(to)) = (self.machines.get_mut(host).filter(has_moved), to) {
                machine.stop();
                let from = machine.peer_port;
                machine.relocate(to);
                machine.starts_at = Some(self.now + 3_000_000);
                // Whoever is about to join asks where members are now.
                let joining = self.machines.values_mut().filter(|machine| machine.is_joining);
                joining.for_each(|machine| machine.is_told_of(*host, from, to));
                self.count(Fault::Move { whom: Whom::Host(*host) });
                self.asks_until = self.now;
            }
        }
    }

    /// The newest release that somebody runs and that a newcomer is let in with, by minor and patch.
    fn newest_let_in(&self, cluster: &Cluster) -> Option<(u64, u64)> {
        let releases = self.machines.values().map(|machine| (machine.minor, machine.patch));
        releases.filter(|(minor, _)| is_let_in(cluster, *minor)).max()
    }

    /// A newcomer whose cluster was lowered before it was let in waits until it is started with a release that fits.
    fn let_newcomers_in(&mut self, cluster: &Cluster) {
        let Some(release) = self.newest_let_in(cluster) else { return };
        let waiting = |machine: &&mut Machine| machine.is_new && !is_let_in(cluster, machine.minor);
        for machine in self.machines.values_mut().filter(waiting) {
            machine.stop();
            (machine.minor, machine.patch) = release;
            machine.starts_at = Some(self.now + 3_000_000);
        }
    }

    /// Has machines come and go with the members.
    pub(crate) fn follow_members(&mut self) {
        let Some(cluster) = self.cluster() else { return };
        // Where those are down that have applied more, nobody was removed who is only not added yet.
        let applied =
            self.machines.values().filter_map(Machine::member).map(|member| member.read(|state| state.applied));
        match applied.max() {
            Some(applied) if applied >= self.followed_to => self.followed_to = applied,
            _ => return,
        }
        self.follow_downgrades(&cluster);
        let now = members(&cluster, self.hosts());
        self.follow_moves(&cluster, &now);
        self.let_newcomers_in(&cluster);
        let mut counted = Vec::new();
        for (host, (_, role)) in &now {
            let added = Fault::Add { is_learner: *role == Role::Learner };
            match self.machines.get_mut(host) {
                Some(machine) if machine.role == Role::Learner && *role == Role::Voter => {
                    machine.role = *role;
                    counted.push(Fault::Promote);
                }
                Some(_) => {}
                None => {
                    let running = self.machines.iter().filter(|(other, _)| now.contains_key(other));
                    let others: Vec<_> = running.map(|(other, machine)| (*other, machine.peer_port)).collect();
                    let Some(release) = self.newest_let_in(&cluster) else { continue };
                    let machine = Machine::added(*host, &self.network, &self.plan, &others, release, *role);
                    self.machines.insert(*host, machine);
                    counted.push(added);
                }
            }
        }
        for (host, machine) in &mut self.machines {
            if !now.contains_key(host) && machine.role != Role::Removed {
                machine.role = Role::Removed;
                counted.push(Fault::Remove { whom: Whom::Host(*host) });
            }
        }
        if counted.is_empty() {
            return;
        }
        // The next one may ask.
        self.asks_until = self.now;
        let voters = self.machines.iter().filter(|(_, machine)| machine.role == Role::Voter);
        self.clients.reach(voters.map(|(host, _)| *host));
        counted.into_iter().for_each(|fault| self.count(fault));
    }

    /// It has taken effect.
    pub(crate) fn count(&mut self, fault: Fault) {
        *self.report.faults.entry(fault.kind().into()).or_default() += 1;
    }

    /// A learner that wishes otherwise than what is decided was refused (KEP-4647, "Learner"): it is started with that.
    pub(crate) fn agrees(&mut self, host: HostId) {
        let Some(Cluster { gate: Gate::Decided(features), .. }) = self.cluster() else { return };
        if let Some(machine) = self.machines.get_mut(&host) {
            machine.wishes = Wishes::as_decided(&features);
        }
    }

    /// What the gate is not yet that it must come to, by what each machine runs and says: where all members have their disks.
    pub(crate) fn unsettled(&self) -> Option<String> {
        let cluster = self.cluster()?;
        let there = || self.machines.values().filter(|machine| machine.role != Role::Removed);
        if there().any(|machine| machine.loss.is_some()) {
            return None;
        }
        if let Some(target) = cluster.downgrade {
            return Some(format!("a downgrade to {target} is under way"));
        }
        let version = there().map(|machine| machine.release().cluster_version()).min();
        if cluster.version != version {
            return Some(format!("the cluster version is {:?}, and all have {version:?}", cluster.version));
        }
        let version = version.filter(|version| *version >= FIRST_WITH_GATES)?;
        let wants = |machine: &Machine| {
            let registry = Registry::of(&machine.release());
            registry.proposal(version, &machine.wishes.overrides(registry))
        };
        let all: Vec<Features> = there().filter(|machine| machine.role == Role::Voter).map(wants).collect();
        let wanted = all_want(&all.iter().collect::<Vec<_>>())?;
        (cluster.gate != Gate::Decided(wanted.clone()))
            .then(|| format!("the gate is {:?}, and the voters want {wanted:?}", cluster.gate))
    }
}

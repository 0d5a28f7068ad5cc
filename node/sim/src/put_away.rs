//! A copy of the unlucky machine's disk, and who knows of a start that came after it.

use std::collections::BTreeMap;

use node::cluster::member::Starts;
use proto::MemberId;
use simulated_disk::SimulatedDisk;

use crate::{
    machine::Machine,
    network::{HostId, Micros},
};

/// What a member has applied for so long, in microseconds, its own disk has, however slow it is.
const DURABLE: Micros = 2_000_000;

pub(crate) struct PutAway {
    pub(crate) disk: SimulatedDisk,
    /// Which member it is of, and how often that had started; none where it was not up.
    of: Option<(MemberId, Starts)>,
    /// Since when each other machine knows of a later start.
    known: BTreeMap<HostId, Micros>,
}

impl PutAway {
    pub(crate) fn of(machine: &Machine) -> Self {
        let of = machine.member().map(|member| (member.identity().member, member.identity().starts));
        Self { disk: machine.host.disk.copy(), of, known: BTreeMap::new() }
    }

    /// Looks at what the machines know.
    pub(crate) fn look(&mut self, machines: &BTreeMap<HostId, Machine>, now: Micros) {
        let Some((id, starts)) = self.of else { return };
        for (host, machine) in machines {
            let member = machine.member().filter(|_| machine.frozen_until.is_none());
            let later = |member: node::member::Member| {
                member.read(|state| state.cluster.members.get(&id).is_some_and(|member| member.starts > starts))
            };
            if member.is_some_and(later) {
                self.known.entry(*host).or_insert(now);
            } else {
                self.known.retain(|known, since| known != host || *since + DURABLE <= now);
            }
        }
    }

    /// Whether everybody but this machine knows of a later start, and will know it after any fault: then the copy is told from what
    /// it is a copy of, whoever is there (N-7).
    pub(crate) fn is_known_to_others(
        &self,
        unlucky: HostId,
        machines: &BTreeMap<HostId, Machine>,
        now: Micros,
    ) -> bool {
        let is_known = |host: &HostId| self.known.get(host).is_some_and(|since| since + DURABLE <= now);
        machines.keys().filter(|host| **host != unlucky).all(is_known)
    }
}

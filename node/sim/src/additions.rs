//! A voter that somebody asks for. It counts from the entry on, in whoever's log that is (raft dissertation, section 4.1), and it has a
//! machine only once that is applied. Until then it is one that never starts: where a disk is lost as well, three voters may be left
//! without a majority of the four.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    machine::{Machine, Role},
    network::{HostId, Micros},
    world::World,
};

/// Whoever was asked may go on for so long with what nobody waits for any more, in microseconds: a request, and a leader that stood
/// still.
const GOES_ON: Micros = 16_000_000;

pub(crate) struct Addition {
    host: HostId,
    /// No log gets it after this.
    until: Micros,
    /// Whose logs add it. Who is down has what it had.
    logs: BTreeSet<HostId>,
}

impl Addition {
    fn look(&mut self, machines: &BTreeMap<HostId, Machine>) {
        for (host, machine) in machines {
            match machine.member().map(|member| member.appended_voter().is_some()) {
                _ if machine.loss.is_some() => self.logs.remove(host),
                Some(true) => self.logs.insert(*host),
                Some(false) => self.logs.remove(host),
                None => false,
            };
        }
    }
}

impl World {
    /// Somebody asks for a voter on this new machine, from now on.
    pub(crate) fn expect_voter(&mut self, host: HostId) {
        let logs = self.addition.take().map(|addition| addition.logs).unwrap_or_default();
        self.addition = Some(Addition { host, until: self.now + GOES_ON, logs });
    }

    /// Until it has its machine, or no log has it and none will.
    pub(crate) fn follow_addition(&mut self) {
        let Some(addition) = &mut self.addition else { return };
        addition.look(&self.machines);
        if self.machines.contains_key(&addition.host) || self.now > addition.until && addition.logs.is_empty() {
            self.addition = None;
        }
    }

    /// Whether the unlucky machine's disk may go now: with a voter under way that never starts a majority is left.
    pub(crate) fn bears_a_loss(&self) -> bool {
        self.addition.is_none() || self.outlasts_a_newcomer(Some(self.plan.unlucky))
    }

    /// Whether the voters that have their disks are a majority with one more that never starts, and without this one.
    pub(crate) fn outlasts_a_newcomer(&self, without: Option<HostId>) -> bool {
        let voters = || self.machines.values().filter(|machine| machine.role == Role::Voter);
        let left = voters().filter(|machine| machine.loss.is_none() && Some(machine.host.id) != without);
        2 * left.count() > voters().count() + 1
    }
}

//! The store: evaluates the shipped Txns as etcd does, and forgets what leases held.

use std::rc::Rc;

use agent::rollout::{
    keys::{At, Baton, KeyName},
    txn::{Is, Op, Txn},
};
use proto::Revision;

use super::{
    names::machine_of,
    world::{By, World},
};

impl World {
    /// Does a Txn, or refuses it.
    pub fn commit(&mut self, txn: &Txn, by: By) -> Result<Revision, ()> {
        if !txn.compares.iter().all(|compare| self.holds(compare.key, compare.is)) {
            return Err(());
        }
        self.follow(txn, by);
        self.revision += 1;
        let revision = Revision(self.revision);
        txn.ops.iter().for_each(|op| self.write(op, revision));
        Ok(revision)
    }

    fn stamp(&self, key: KeyName) -> Option<(Revision, Revision)> {
        fn of<T>(at: &At<T>) -> (Revision, Revision) {
            (at.created, at.modified)
        }
        match key {
            KeyName::Run => self.keys.run.as_ref().map(of),
            KeyName::Agent(host) => self.keys.agents.get(&host).map(of),
            KeyName::Baton => self.keys.baton.as_ref().map(of),
            KeyName::Down => self.keys.down.as_ref().map(of),
            KeyName::Lost(member) => self.keys.lost.get(&member).map(of),
        }
    }

    fn holds(&self, key: KeyName, is: Is) -> bool {
        match (self.stamp(key), is) {
            (None, Is::Absent) => true,
            (Some((created, _)), Is::Created(revision)) => created == revision,
            (Some((_, modified)), Is::Modified(revision)) => modified == revision,
            _ => false,
        }
    }

    fn write(&mut self, op: &Op, modified: Revision) {
        let stamp = |key| self.stamp(key).map_or(modified, |(created, _)| created);
        let created = match op {
            Op::PutRun(_) => stamp(KeyName::Run),
            Op::PutBaton(_) => stamp(KeyName::Baton),
            Op::PutDown(_) => stamp(KeyName::Down),
            Op::PutLost(record) => stamp(KeyName::Lost(record.member)),
            Op::PutAgent(..) | Op::Delete(_) => modified,
        };
        let keys = Rc::make_mut(&mut self.keys);
        match op.clone() {
            Op::PutRun(value) => keys.run = Some(At { created, modified, value }),
            Op::PutBaton(value) => keys.baton = Some(At { created, modified, value }),
            Op::PutDown(value) => keys.down = Some(At { created, modified, value }),
            Op::PutLost(value) => drop(keys.lost.insert(value.member, At { created, modified, value })),
            // Nothing compares when an agent registered.
            Op::PutAgent(host, value) => {
                let at = At { created: Revision(0), modified: Revision(0), value };
                keys.agents.insert(host, at);
            }
            Op::Delete(KeyName::Run) => keys.run = None,
            Op::Delete(KeyName::Baton) => keys.baton = None,
            Op::Delete(KeyName::Down) => keys.down = None,
            Op::Delete(KeyName::Agent(host)) => drop(keys.agents.remove(&host)),
            Op::Delete(KeyName::Lost(member)) => drop(keys.lost.remove(&member)),
        }
    }

    // ---- leases ----

    /// Whether leased keys of this host stand that nobody keeps alive.
    pub fn has_lapsing_keys(&self, host: usize) -> bool {
        let process = self.hosts[host].process.as_ref();
        let own = process.map(|_| self.id_of_host(host));
        let is_dying = |baton: &Baton| {
            baton.process.boot_id == machine_of(host) && process.is_none_or(|process| process.kept != Some(baton.take))
        };
        self.keys.baton.as_ref().is_some_and(|baton| is_dying(&baton.value))
            || self.keys.agents.iter().any(|(id, at)| at.value.process.boot_id == machine_of(host) && Some(*id) != own)
    }

    /// The leases of this host that nobody keeps alive run out; where its agent is frozen, all of them.
    pub fn lapse(&mut self, host: usize, is_frozen: bool) {
        let process = self.hosts[host].process.as_ref().filter(|_| !is_frozen);
        let own = process.map(|_| self.id_of_host(host));
        let kept = process.and_then(|process| process.kept);
        let machine = machine_of(host);
        Rc::make_mut(&mut self.keys).agents.retain(|id, at| at.value.process.boot_id != machine || Some(*id) == own);
        self.end_lease(|baton| baton.process.boot_id == machine && Some(baton.take) != kept);
    }

    /// A lease that is gone takes the baton with it, and every sending of that taking that has not landed.
    pub fn end_lease(&mut self, is_its: impl Fn(&Baton) -> bool) {
        self.late.retain(|late| !late.txn.ops.iter().any(|op| matches!(op, Op::PutBaton(baton) if is_its(baton))));
        if self.keys.baton.as_ref().is_some_and(|baton| is_its(&baton.value)) {
            Rc::make_mut(&mut self.keys).baton = None;
        }
    }
}

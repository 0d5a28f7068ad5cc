//! The store: evaluates the shipped Txns as etcd does, and forgets what leases held.

use std::rc::Rc;

use super::world::{By, World};
use agent::keys::{
    At, Baton, KeyName, ProcessId, TakeId,
    host_id::HostId,
    txn::{Is, Op, Txn},
};
use proto::Revision;

/// A lease, by what is bound to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// The agent's key under this id.
    Registration(HostId),
    /// The baton, and a sending of this taking of it that is under way.
    Taking(TakeId),
}

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
            KeyName::Step => self.keys.step.as_ref().map(of),
            KeyName::Abandoned(member) => self.keys.abandoned.get(&member).map(of),
            KeyName::Host(host) => self.keys.hosts.get(&host).map(of),
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
            Op::PutStepLock(_) => stamp(KeyName::Step),
            Op::PutAbandoned(record) => stamp(KeyName::Abandoned(record.member)),
            Op::PutHost(host, _) => stamp(KeyName::Host(*host)),
            Op::PutAgent(..) | Op::Delete(_) => modified,
        };
        let keys = Rc::make_mut(&mut self.keys);
        match op.clone() {
            Op::PutRun(value) => keys.run = Some(At { created, modified, value }),
            Op::PutBaton(value) => keys.baton = Some(At { created, modified, value }),
            Op::PutStepLock(value) => keys.step = Some(At { created, modified, value }),
            Op::PutAbandoned(value) => drop(keys.abandoned.insert(value.member, At { created, modified, value })),
            // Its last write is compared, never its first: told apart, they would only make more worlds.
            Op::PutAgent(host, value) => drop(keys.agents.insert(host, At { created, modified, value })),
            Op::Delete(KeyName::Run) => keys.run = None,
            Op::Delete(KeyName::Baton) => keys.baton = None,
            Op::Delete(KeyName::Step) => keys.step = None,
            Op::Delete(KeyName::Agent(host)) => drop(keys.agents.remove(&host)),
            Op::Delete(KeyName::Abandoned(member)) => drop(keys.abandoned.remove(&member)),
            Op::PutHost(host, value) => drop(keys.hosts.insert(host, At { created, modified, value })),
            Op::Delete(KeyName::Host(host)) => drop(keys.hosts.remove(&host)),
        }
    }

    // ---- leases: one for each registration, one for each taking of the baton ----

    /// Those that nobody keeps alive.
    pub fn lapsing(&self) -> Vec<Lease> {
        let agents = self.keys.agents.iter().filter(|(_, at)| !self.runs(at.value.process));
        let late = self.late.iter().flat_map(|late| &late.txn.ops);
        let late = late.filter_map(|op| if let Op::PutBaton(baton) = op { Some(baton) } else { None });
        let takings = self.keys.baton.iter().map(|at| &at.value).chain(late).map(|baton| baton.take);
        let takings = takings.filter(|take| !self.processes().any(|process| process.kept == Some(*take)));
        agents.map(|(host, _)| Lease::Registration(*host)).chain(takings.map(Lease::Taking)).collect()
    }

    /// One of them runs out.
    pub fn lapse(&mut self, lease: Lease) {
        match lease {
            Lease::Registration(host) => drop(Rc::make_mut(&mut self.keys).agents.remove(&host)),
            Lease::Taking(take) => self.end_lease(|baton| baton.take == take),
        }
    }

    /// All leases of a process run out at once: it stood still for longer than they live, or gave them back at its end.
    pub fn end_leases_of(&mut self, process: ProcessId) {
        Rc::make_mut(&mut self.keys).agents.retain(|_, at| at.value.process != process);
        self.end_lease(|baton| baton.process == process);
    }

    /// A lease that is gone takes the baton with it, and every sending of that taking that has not landed.
    pub fn end_lease(&mut self, is_its: impl Fn(&Baton) -> bool) {
        self.late.retain(|late| !late.txn.ops.iter().any(|op| matches!(op, Op::PutBaton(baton) if is_its(baton))));
        if self.keys.baton.as_ref().is_some_and(|baton| is_its(&baton.value)) {
            Rc::make_mut(&mut self.keys).baton = None;
        }
    }
}

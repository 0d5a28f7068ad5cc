//! Hosts that are held: what persons and tools do to their records, and what must hold of them.

use std::collections::BTreeMap;

use super::{
    judge::{Violation, check},
    moves::At,
    names::{host_id, id_of},
    scenario::Scenario,
    world::World,
};
use agent::{
    keys::{
        At as Stamped,
        host_id::HostId,
        host_record::{Hold, HostRecord, Mark, Phase, QUORUM},
        membership::RoleChange,
        txn::Txn,
    },
    plan::protection,
};
use proto::Revision;

pub const NOT_HELD: Violation = "a promotion was called for with no hold on its host";
pub const MARKED: Violation = "a promotion was called for on a host that is to go";
pub const KEPT: Violation = "a removal was called for while somebody held its host";
pub const HOLD_LEFT: Violation = "a hold outlived its member";

/// Those of the voters that there are at first, where they are adopted.
pub fn records(scenario: &Scenario) -> BTreeMap<HostId, Stamped<HostRecord>> {
    let record = |seat: usize| {
        let value = HostRecord::joining("".into()).holding(id_of(seat)).in_phase(Phase::Running);
        (host_id(seat, 0), Stamped { created: Revision(0), modified: Revision(0), value })
    };
    (0..scenario.voters).filter(|_| scenario.is_held).map(record).collect()
}

/// Somebody's hold.
fn others() -> Hold {
    Hold { name: "x".into(), owner: "x".into(), why: "".into() }
}

/// What a person or a tool does to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByHand {
    Mark,
    Unmark,
    Hold,
    LetGo,
    /// The agents' own hold is taken away.
    Unhold,
}

impl World {
    fn record(&self, host: usize) -> Option<&Stamped<HostRecord>> {
        self.keys.hosts.get(&self.id_of_host(host))
    }

    /// What may be done by hand to the hosts' records: faults as far as there are any left, the rest at any time.
    pub fn by_hand(&self, is_quiet: bool) -> Vec<(At, ByHand)> {
        let left = &self.left;
        let mut found = Vec::new();
        for host in 0..self.hosts.len() {
            let Some(record) = self.record(host).map(|at| &at.value) else { continue };
            let is_here = record.phase != Phase::Left;
            let mut may = |is_so: bool, what| found.extend(is_so.then_some((host as At, what)));
            may(left.mark > 0 && is_here && !record.is_marked(), ByHand::Mark);
            may(left.unhold > 0 && record.is_held(), ByHand::Unhold);
            may(left.hold > 0 && is_here && record.others_hold().is_none() && !self.leaves(record), ByHand::Hold);
            may(record.others_hold().is_some(), ByHand::LetGo);
            // Who wants it to go has to think again, or its newcomer could never come.
            may(is_quiet && record.is_marked(), ByHand::Unmark);
        }
        found
    }

    /// Whether the removal of a member that this host carries has begun.
    fn leaves(&self, record: &HostRecord) -> bool {
        let step = self.keys.step.as_ref().map(|step| &step.value);
        step.is_some_and(|step| step.role == Some(RoleChange::Leave) && record.carries(step.member))
    }

    pub fn do_by_hand(&mut self, host: usize, what: ByHand) {
        let id = self.id_of_host(host);
        let Some(seen) = self.record(host).cloned() else { return };
        let record = seen.value.clone();
        let now = match what {
            ByHand::Mark => HostRecord { mark: Some(Mark { by: "x".into(), why: "".into() }), ..record },
            ByHand::Unmark => HostRecord { mark: None, ..record },
            ByHand::Hold => record.with_hold(others()),
            ByHand::LetGo => record.without_hold(&others().name),
            ByHand::Unhold => record.without_hold(QUORUM),
        };
        let txn = match what {
            ByHand::Hold => Txn::note_host_beside(id, Some(&seen), now, self.keys.step.as_ref()),
            _ => Txn::note_host(id, Some(&seen), now),
        };
        self.commit(&txn, super::world::By).ok();
    }

    /// At the write that says that a call may be sent: from there on it is not taken back.
    pub fn judge_called(&self, before: &World) -> Result<(), Violation> {
        let called = |world: &World| {
            let run = world.keys.run.as_ref()?;
            run.value.membership.as_ref()?.called
        };
        let Some(step) = self.keys.step.as_ref().filter(|_| called(self).is_some() && called(self) != called(before))
        else {
            return Ok(());
        };
        let record = protection::host_of(&self.keys, step.value.member).map(|(_, at)| &at.value);
        match step.value.role {
            Some(RoleChange::Promote) if protection::is_on(&self.keys) => {
                let marked = || {
                    (0..self.hosts.len())
                        .filter_map(|host| self.record(host))
                        .any(|at| at.value.phase == Phase::Joining && at.value.is_marked())
                };
                check(record.is_some_and(HostRecord::is_held), NOT_HELD)?;
                check(!record.is_some_and(HostRecord::is_marked) && !marked(), MARKED)
            }
            Some(RoleChange::Leave) => check(record.is_none_or(|record| record.others_hold().is_none()), KEPT),
            _ => Ok(()),
        }
    }

    /// At the end of a run.
    pub fn judge_holds_left(&self) -> Result<(), Violation> {
        let is_right = |at: &Stamped<HostRecord>| at.value.members.iter().all(|id| self.is_listed(*id));
        check(self.keys.hosts.values().all(is_right), HOLD_LEFT)
    }
}

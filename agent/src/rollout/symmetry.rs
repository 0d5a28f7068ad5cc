//! Renaming: two states of the protocol that differ only in the numbers of revisions and ids are one state.
//!
//! For model checkers: without it no search would end, since every Txn moves the revision up. The machine
//! only ever asks whether two of these are equal, which any renaming that keeps them apart preserves.

use proto::Revision;

use super::{
    agent::{Agent, Phase, Then},
    keys::{At, Keys},
    step::Stepping,
    txn::{Is, Op, Txn},
};
use crate::journal::progress::{Entry, InHand};

/// What is renamed.
#[allow(missing_docs)]
pub trait Names {
    fn revision(&mut self, revision: &mut Revision);
    fn id(&mut self, id: &mut u128);
}

/// Something that holds revisions and ids.
pub trait Renamed {
    /// Shows each of them once.
    fn rename(&mut self, names: &mut dyn Names);
}

fn rename_at<T>(at: &mut At<T>, names: &mut dyn Names) {
    names.revision(&mut at.created);
    names.revision(&mut at.modified);
}

impl Renamed for Keys {
    fn rename(&mut self, names: &mut dyn Names) {
        if let Some(run) = &mut self.run {
            rename_at(run, names);
            names.id(&mut run.value.id.0);
        }
        self.agents.values_mut().for_each(|at| rename_at(at, names));
        if let Some(baton) = &mut self.baton {
            rename_at(baton, names);
            names.id(&mut baton.value.take.0);
        }
        for record in self.down.iter_mut().chain(self.lost.values_mut()) {
            rename_at(record, names);
            names.id(&mut record.value.attempt.0);
        }
    }
}

impl Renamed for Txn {
    fn rename(&mut self, names: &mut dyn Names) {
        for compare in &mut self.compares {
            if let Is::Created(revision) | Is::Modified(revision) = &mut compare.is {
                names.revision(revision);
            }
        }
        for op in &mut self.ops {
            match op {
                Op::PutRun(run) => names.id(&mut run.id.0),
                Op::PutDown(record) | Op::PutLost(record) => names.id(&mut record.attempt.0),
                Op::PutBaton(baton) => names.id(&mut baton.take.0),
                Op::PutAgent(..) | Op::Delete(_) => {}
            }
        }
    }
}

impl Renamed for InHand {
    fn rename(&mut self, names: &mut dyn Names) {
        names.id(&mut self.step.attempt.0);
    }
}

impl Renamed for Entry {
    fn rename(&mut self, names: &mut dyn Names) {
        if let Self::Planned(step) = self {
            names.id(&mut step.attempt.0);
        }
    }
}

impl Renamed for Agent {
    fn rename(&mut self, names: &mut dyn Names) {
        self.record.iter_mut().for_each(|revision| names.revision(revision));
        if let Some(held) = &mut self.baton {
            names.revision(&mut held.created);
            names.id(&mut held.take.0);
        }
        self.joined.iter_mut().for_each(|run| names.id(&mut run.0));
        self.in_hand.iter_mut().for_each(|in_hand| in_hand.rename(names));
        match &mut self.phase {
            Phase::Sending(txn, then) => {
                txn.rename(names);
                if let Then::Baton { take, .. } = then {
                    names.id(&mut take.0);
                }
            }
            Phase::GivingBack(take, _) => names.id(&mut take.0),
            Phase::Stepping(Stepping::HookBefore(_, attempt)) => names.id(&mut attempt.0),
            _ => {}
        }
    }
}

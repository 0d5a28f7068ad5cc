//! What comes of a Txn: what it was sent for, and where a yes, a no or no answer at all leads.
//!
//! A Txn without an answer may have been done, and is sent again as it was: it was made so that a second one does
//! nothing (agent/PROTOCOL.md, R-3).

use std::sync::Arc;

use proto::Revision;

use super::{
    act::{Act, Ending, Event},
    agent::{Agent, Held, Without},
};
use crate::{
    keys::{Keys, TakeId, txn::Txn},
    plan::{
        action::{Guard, Restart},
        refusal::Wait,
    },
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Then {
    /// To look again, whatever the answer.
    Look,
    Register,
    Baton {
        take: TakeId,
        /// An earlier sending had no answer, and may still land after this one was refused.
        may_land: bool,
    },
    /// To begin taking this member down.
    PutStepLock(Restart),
    /// To begin a guarded command.
    PutGuard(Guard),
    EndGuard {
        failed: Option<Arc<str>>,
        began: bool,
    },
    /// To leave a step that did not stop anything, or was undone.
    Undo,
    EndStep(Option<Arc<str>>),
    /// To mark the run, with the record kept.
    Mark(Ending),
}

impl Then {
    fn sent_again(self) -> Self {
        match self {
            Self::Baton { take, .. } => Self::Baton { take, may_land: true },
            other => other,
        }
    }
}

impl Agent {
    pub(super) fn answered(&mut self, txn: Txn, then: Then, event: Event) -> Act {
        match event {
            Event::Yes(revision) => self.yes(then, revision),
            Event::No(keys) => self.no(then, &keys),
            Event::Unknown { .. } if !self.rules.unknown_is_asked_again => self.no(then, &Keys::default()),
            Event::Unknown { give_up: false } => self.send(txn, then.sent_again()),
            _ => self.give_up(then),
        }
    }

    fn yes(&mut self, then: Then, revision: Revision) -> Act {
        match then {
            Then::Look => self.look(),
            Then::Register => self.is_known(),
            Then::Baton { take, .. } => {
                self.baton = Some(Held { created: revision, take });
                self.look()
            }
            Then::PutStepLock(go) => self.record_stands(go, revision),
            Then::PutGuard(go) => self.guard_stands(go, revision),
            Then::EndGuard { failed, began } => self.forget_guard(failed, began),
            Then::Undo => self.forget(),
            Then::EndStep(failure) => self.step_ended(failure),
            Then::Mark(ending) => self.leave(ending),
        }
    }

    /// A refusal. Where the Txn had been sent before, the keys say whether that one was done.
    fn no(&mut self, then: Then, keys: &Keys) -> Act {
        match then {
            // Nobody's key was in the way: the cluster grants no lease, as under an alarm, and what forbids a run is said
            // all the same.
            Then::Register if !keys.agents.contains_key(&self.me.host) => self.is_known(),
            Then::Look | Then::Register | Then::Mark(_) => self.no_longer_so(then),
            Then::Baton { take, may_land } => match &keys.baton {
                Some(baton) if baton.value.take == take => self.yes(then, baton.created),
                other => {
                    let host = other.as_ref().map_or(self.me.host, |baton| baton.value.host);
                    match may_land {
                        true => self.give_back(take, Without::Rest(Wait::Baton { host })),
                        false => self.rest(Wait::Baton { host }),
                    }
                }
            },
            Then::PutStepLock(go) => match &keys.step {
                Some(down) if self.is_mine(down.value.attempt) => self.record_stands(go, down.created),
                _ => self.forget(),
            },
            Then::PutGuard(go) => match &keys.step {
                Some(lock) if self.is_mine(lock.value.attempt) => self.guard_stands(go, lock.created),
                _ => self.forget_guard(None, false),
            },
            Then::EndGuard { failed, began } => self.end_guard_in(failed, began, keys),
            Then::Undo => self.forget(),
            Then::EndStep(failure) => self.end_step_refused(failure, keys),
        }
    }

    fn no_longer_so(&mut self, then: Then) -> Act {
        match then {
            Then::Mark(ending) => self.mark(ending),
            _ => self.look(),
        }
    }

    /// The answer never came. What was sent may still be done: the next process of this host finds its trace.
    fn give_up(&mut self, then: Then) -> Act {
        self.baton = None;
        match then {
            Then::Mark(ending) => self.leave(ending),
            _ => self.leave_record(),
        }
    }
}

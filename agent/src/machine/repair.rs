//! Starting over after a crash: bring this host's own members up first, then settle what the journal and the
//! record say of the step that was in hand.
//!
//! Starting what is down needs nobody's leave, no quorum and no baton. Which binary is started is said by
//! the journal alone: the one the member came from until *starting* was written, the other from then on.
//! Source: agent/PROTOCOL.md, R-6, with the table of journal and record.

use std::sync::Arc;

use proto::{MemberId, Revision};

use super::{
    act::{Act, Ending, Event, Looked},
    agent::{Agent, Phase},
    txn_outcome::Then,
};
use crate::{
    journal::{
        progress,
        restart::{Binary, Direction, InHand, Stage},
    },
    keys::txn::Txn,
    plan::{OnFailure, refusal::Wait},
};

/// What is under way while repairing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Repairing {
    /// The step's binary is being made the member's own; these others are down too.
    Switching(Vec<MemberId>),
    /// A process is being started; these are still to do, then those are awaited.
    Starting {
        left: Vec<MemberId>,
        /// Started, and not of the step in hand.
        started: Vec<MemberId>,
    },
    /// A member of no step becomes ready; these are to be awaited after it.
    Reviving { member: MemberId, left: Vec<MemberId> },
    /// The member of the step in hand becomes ready.
    Healing,
    /// Journal and record are held against each other.
    Resolving {
        /// Why the member is not ready.
        sick: Option<Arc<str>>,
    },
    /// The keys could not be read.
    Unanswered {
        /// Why the member is not ready.
        sick: Option<Arc<str>>,
    },
}

impl Agent {
    fn repairing(&mut self, repairing: Repairing, act: Act) -> Act {
        self.ask(Phase::Repairing(repairing), act)
    }

    pub(super) fn boot(&mut self, in_hand: Option<progress::InHand>, down: Vec<MemberId>) -> Act {
        self.in_hand = in_hand;
        if self.only_asks() {
            return match in_hand {
                Some(in_hand) => self.leave(Ending::NotYet(Wait::Ready { member: in_hand.member() })),
                None => self.set_out(),
            };
        }
        if let Some(guarded) = in_hand.and_then(progress::InHand::guarded) {
            return self.resume_guard(guarded);
        }
        let in_hand = self.restart_in_hand();
        match in_hand {
            Some(InHand { stage: Stage::Stopping(_) | Stage::Switched(_) | Stage::Starting(_), step }) => {
                let others = down.into_iter().filter(|member| *member != step.member).collect();
                let to = self.binary_to_mend(in_hand.map_or(Binary::Old, |in_hand| in_hand.binary()));
                self.repairing(Repairing::Switching(others), Act::Switch { member: step.member, to })
            }
            _ => self.revive(down),
        }
    }

    fn binary_to_mend(&self, said: Binary) -> Binary {
        if self.rules.repair_respects_the_start { said } else { Binary::Old }
    }

    /// Starts members of this host that are down, then waits for each to be ready.
    pub(super) fn revive(&mut self, down: Vec<MemberId>) -> Act {
        let started = down.clone();
        self.start_next(down, started)
    }

    fn start_next(&mut self, mut left: Vec<MemberId>, started: Vec<MemberId>) -> Act {
        match left.pop() {
            Some(member) => self.repairing(Repairing::Starting { left, started }, Act::Start(member)),
            None => self.await_next(started),
        }
    }

    fn await_next(&mut self, mut left: Vec<MemberId>) -> Act {
        match left.pop() {
            Some(member) => self.repairing(Repairing::Reviving { member, left }, Act::AwaitReady { member, on: None }),
            None => self.heal(),
        }
    }

    fn heal(&mut self) -> Act {
        let Some(in_hand) = self.restart_in_hand() else { return self.set_out() };
        match in_hand.stage {
            Stage::Planned | Stage::Done(_) => self.repairing(Repairing::Resolving { sick: None }, Act::Look),
            Stage::Stopping(_) | Stage::Switched(_) | Stage::Starting(_) => {
                let on = Some(self.binary_to_mend(in_hand.binary()));
                self.repairing(Repairing::Healing, Act::AwaitReady { member: in_hand.step.member, on })
            }
        }
    }

    pub(super) fn repair(&mut self, repairing: Repairing, event: Event) -> Act {
        match (repairing, event) {
            (Repairing::Switching(mut others), event) => {
                // Where the switch failed, what is installed may be the binary that must not be started yet.
                let is_switched = !matches!(event, Event::Failed(_));
                let own = self.in_hand.map(|in_hand| in_hand.member()).filter(|_| is_switched);
                let started = others.clone();
                others.extend(own);
                self.start_next(others, started)
            }
            (Repairing::Starting { left, started }, _) => self.start_next(left, started),
            (Repairing::Reviving { left, .. }, Event::Done) => self.await_next(left),
            (Repairing::Reviving { member, .. }, Event::NoQuorum) => self.leave(Ending::NoQuorum { member }),
            (Repairing::Reviving { member, .. }, Event::Failed(why)) => self.leave(Ending::Sick { member, why }),
            (Repairing::Healing, Event::Done) => self.repairing(Repairing::Resolving { sick: None }, Act::Look),
            (Repairing::Healing, Event::Failed(why)) => {
                self.repairing(Repairing::Resolving { sick: Some(why) }, Act::Look)
            }
            (Repairing::Healing, _) => {
                let member = self.member();
                self.leave(Ending::NoQuorum { member })
            }
            (Repairing::Resolving { sick }, Event::Looked(looked)) => self.resolve(sick, &looked),
            (Repairing::Unanswered { .. }, Event::Woke { expired: true }) => self.leave_record(),
            (Repairing::Unanswered { sick }, _) => self.repairing(Repairing::Resolving { sick }, Act::Look),
            (repairing, _) => self.repairing(repairing, Act::Look),
        }
    }

    /// The table of journal and record.
    fn resolve(&mut self, sick: Option<Arc<str>>, looked: &Looked) -> Act {
        let Some(in_hand) = self.restart_in_hand() else { return self.set_out() };
        let Some(keys) = &looked.keys else {
            return self.unanswered_repair(sick);
        };
        if let Some(twin) = self.twin(looked) {
            return self.leave(Ending::Refused(twin));
        }
        self.note(looked);
        let (member, attempt) = (in_hand.step.member, in_hand.step.attempt);
        self.record = keys.step.as_ref().filter(|down| down.value.attempt == attempt).map(|down| down.created);
        let lost = keys.abandoned.get(&member).filter(|lost| lost.value.attempt == attempt).map(|lost| lost.created);
        if looked.removed.contains(&member) {
            return self.let_go(member, lost);
        }
        let is_listed = looked.view.as_ref().is_some_and(|view| view.member(member).is_some());
        if !is_listed && (self.record.is_some() || lost.is_some()) {
            // Nobody lists it, and those are too few to believe that it was removed.
            return self.unanswered_repair(sick);
        }
        if let Some(why) = sick {
            return self.resolve_sick(in_hand, why, lost.is_some());
        }
        let is_ready = looked.view.as_ref().is_some_and(|view| view.ends_step(member));
        match (in_hand.stage, self.record, lost) {
            (Stage::Planned, Some(_), _) | (Stage::Planned, _, Some(_)) | (Stage::Done(_), Some(_), _) if !is_ready => {
                self.repairing(Repairing::Healing, Act::AwaitReady { member, on: None })
            }
            (Stage::Starting(direction), ..) => self.healed(direction, self.failure_of(in_hand), Event::Done),
            (Stage::Done(_), Some(_), _) => self.end_step(self.failure_of(in_hand), looked),
            _ => self.let_go(member, lost),
        }
    }

    /// Waits for an answer of those that are needed; the record stays meanwhile, and afterwards.
    fn unanswered_repair(&mut self, sick: Option<Arc<str>>) -> Act {
        match self.is_interrupted() {
            true => self.leave_record(),
            false => self.repairing(Repairing::Unanswered { sick }, Act::Wait(Wait::Answer)),
        }
    }

    /// Nothing is left to do for this step: its member is as it should be, or was removed from the cluster, and
    /// whatever runs in its place is none of this step's.
    fn let_go(&mut self, member: MemberId, lost: Option<Revision>) -> Act {
        match (self.record, lost) {
            (None, Some(created)) => self.send(Txn::clear_abandoned(member, created), Then::Undo),
            _ => self.undo(),
        }
    }

    /// A member that goes back without having been asked to had failed on its new binary.
    fn failure_of(&self, in_hand: InHand) -> Option<Arc<str>> {
        let goes_back = matches!(in_hand.stage, Stage::Starting(Direction::Back) | Stage::Done(Direction::Back));
        (goes_back && in_hand.step.direction == Direction::Forward)
            .then(|| Arc::from("it did not become ready in its step"))
    }

    fn resolve_sick(&mut self, in_hand: InHand, why: Arc<str>, is_lost: bool) -> Act {
        let member = in_hand.step.member;
        match in_hand.stage {
            _ if self.record.is_none() && !is_lost => self.leave(Ending::Sick { member, why }),
            Stage::Starting(direction) => self.healed(direction, self.failure_of(in_hand), Event::Failed(why)),
            // It was leaving its new binary, and was brought up on it once more: it turns round once more.
            Stage::Stopping(Direction::Back) | Stage::Switched(Direction::Back)
                if in_hand.step.direction == Direction::Back =>
            {
                self.turn_round(None)
            }
            Stage::Stopping(Direction::Back) | Stage::Switched(Direction::Back)
                if self.me.on_failure == OnFailure::PutBack =>
            {
                self.turn_round(Some(why))
            }
            _ => self.keep_as_it_is(why),
        }
    }
}

#[cfg(test)]
#[path = "repair_test.rs"]
mod tests;

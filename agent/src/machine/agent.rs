//! The rollout machine: one agent's way through a run, as `agent + event -> agent, act`.
//!
//! Pure, and whole: what the keys and the members are is known only through events, and nothing is done
//! but by acts. Whom to take down is asked of [`plan::next`] in every state that needs it. This file holds
//! the machine's state and the looks; `deciding.rs` has what follows from one, `txn_outcome.rs` what comes of a Txn, `step/` carries
//! out the planner's actions, `repair.rs` starts over after a crash. The model checker explores this type; `execute/` performs its acts. Source:
//! agent/PROTOCOL.md.

use std::sync::Arc;

use proto::{MemberId, Revision};

use super::{
    act::{Act, Ending, Event, Left, Looked},
    deciding::HAND_OVERS,
    membership::HostWritten,
    step::{Guarding, Restarting},
    txn_outcome::Then,
};
use crate::{
    journal::{progress::InHand, restart::Direction},
    keys::{AttemptId, Backup, ProcessId, RunId, RunResult, RunState, TakeId, change::Change, rules::Rules, txn::Txn},
    observe::evidence::Evidence,
    plan::{
        self, Case, Me, Next,
        membership::Move,
        refusal::{Refusal, Wait},
        warning::Warning,
    },
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Agent {
    pub(super) me: Arc<Me>,
    pub(super) rules: Rules,
    pub(super) process: ProcessId,
    pub(super) phase: Phase,
    /// The step that the journal has in hand.
    pub(super) in_hand: Option<InHand>,
    /// The create revision of the record of that step.
    pub(super) record: Option<Revision>,
    /// The baton, while this process holds it.
    pub(super) baton: Option<Held>,
    pub(super) joined: Option<RunId>,
    /// What was asked, until the run has begun.
    pub(super) evidence: Option<Arc<Evidence>>,
    /// Whether the run has a point of no return: one that was not read may have one.
    pub(super) changes_minor: bool,
    pub(super) interrupted: bool,
    pub(super) prepared: bool,
    pub(super) is_registered: bool,
    pub(super) hand_overs: u8,
    /// How often in a row a stop was not confirmed.
    pub(super) unconfirmed: u8,
    /// The newcomer that this process has said it begins.
    pub(super) begins: Option<AttemptId>,
    /// Why this process gives its newcomer up.
    pub(super) join_failure: Option<Arc<str>>,
    /// How often in a row the cluster did not take the newcomer.
    pub(super) refusals: u8,
    pub(super) host_written: Option<HostWritten>,
    /// Whether `agent resume` has not taken up yet what it found.
    pub(super) may_resume: bool,
    /// Whether the last look was one more, as the keys of the one before may have been too old for what its members said.
    pub(super) looked_again: bool,
    /// What this process has saved, and for which run.
    pub(super) backup: Option<(RunId, Arc<Backup>)>,
}

/// The baton in this process's hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) created: Revision,
    pub(super) take: TakeId,
}

/// What was asked of the world, and what for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Booting,
    /// `repair.rs`
    Repairing(super::repair::Repairing),
    Preparing,
    Looking,
    Examining,
    Hopping,
    BackingUp(RunId),
    Waiting(Wait),
    Settling(Direction),
    Downgrading,
    HandingOver(MemberId),
    GivingBack(TakeId, Without),
    Sending(Txn, Then),
    /// `step/restart.rs`
    Restarting(Restarting),
    /// `step/guard.rs`
    Guarding(Guarding),
    /// `membership.rs`
    Moving(Move),
    Ended,
}

/// What the baton is given back for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Without {
    Rest(Wait),
    /// To wait for the cluster to settle.
    Settle(Direction),
    Hop(Box<Change>),
    Leave(Ending),
}

impl Agent {
    /// An agent that has not been told anything yet.
    pub fn new(me: Arc<Me>, rules: Rules, process: ProcessId) -> Self {
        Self {
            me,
            rules,
            process,
            phase: Phase::Booting,
            in_hand: None,
            record: None,
            baton: None,
            joined: None,
            evidence: None,
            changes_minor: true,
            interrupted: false,
            prepared: false,
            is_registered: false,
            hand_overs: 0,
            unconfirmed: 0,
            begins: None,
            join_failure: None,
            refusals: 0,
            host_written: None,
            may_resume: true,
            looked_again: false,
            backup: None,
        }
    }

    /// Whether this agent holds, or may hold, the baton.
    pub fn holds_baton(&self) -> bool {
        self.baton.is_some()
    }

    pub fn in_hand(&self) -> Option<InHand> {
        self.in_hand
    }

    /// What it is about to end with, once the baton is given back.
    pub fn ending(&self) -> Option<&Ending> {
        match &self.phase {
            Phase::GivingBack(_, Without::Leave(ending)) => Some(ending),
            _ => None,
        }
    }

    /// Takes one event. `None` means that the act under way goes on.
    pub fn on(&mut self, event: Event) -> Option<Act> {
        if event == Event::Interrupted {
            self.interrupted = true;
            return None;
        }
        let phase = std::mem::replace(&mut self.phase, Phase::Ended);
        let act = match (phase, event) {
            (Phase::Booting, Event::Started { in_hand, down }) => self.boot(in_hand, down),
            (Phase::Repairing(repairing), event) => self.repair(repairing, event),
            (Phase::Preparing, Event::Done) => {
                self.prepared = true;
                self.look()
            }
            (Phase::Preparing, Event::Failed(why)) => self.leave(Ending::Unprepared(why)),
            (Phase::Looking, Event::Looked(looked)) => self.decide(*looked),
            (Phase::Examining, Event::Examined(evidence)) => {
                self.evidence = Some(evidence);
                self.look()
            }
            (Phase::Hopping, Event::Hop(me)) => self.set_out_again(me),
            (Phase::BackingUp(run), Event::BackedUp(backup)) => {
                self.backup = Some((run, backup));
                self.look()
            }
            (Phase::BackingUp(_), Event::Failed(_)) if self.interrupted => self.leave(Ending::Interrupted),
            (Phase::BackingUp(_), Event::Failed(why)) => self.leave(Ending::NotBackedUp(why)),
            (Phase::Waiting(Wait::CatchUp { .. }), Event::Woke { expired: true }) => self.catch_up_expired(),
            (Phase::Waiting(wait), Event::Woke { expired: true }) => self.leave(Ending::Expired(wait)),
            (Phase::Waiting(_), Event::Woke { expired: false }) => self.look(),
            (Phase::Settling(direction), event) => self.settled(direction, event),
            (Phase::Downgrading, Event::Done) => self.look(),
            (Phase::Downgrading, Event::Failed(why)) => self.leave(Ending::NotLowered(why)),
            (Phase::HandingOver(_), Event::Done) => {
                self.hand_overs += 1;
                self.look()
            }
            (Phase::HandingOver(member), Event::Failed(why)) => self.hand_over_failed(member, why),
            (Phase::GivingBack(take, then), event) => self.given_back(take, then, &event),
            (Phase::Sending(txn, then), event) => self.answered(txn, then, event),
            (Phase::Restarting(restarting), event) => self.restart(restarting, event),
            (Phase::Guarding(guarding), event) => self.guard(guarding, event),
            (Phase::Moving(next), event) => self.moved(next, &event),
            // An answer to nothing that was asked: the world around the machine is broken, so touch nothing.
            (phase, _) => {
                self.phase = phase;
                return None;
            }
        };
        Some(act)
    }

    pub(super) fn ask(&mut self, phase: Phase, act: Act) -> Act {
        self.phase = phase;
        act
    }

    pub(super) fn send(&mut self, txn: Txn, then: Then) -> Act {
        self.ask(Phase::Sending(txn.clone(), then), Act::Send(txn))
    }

    pub(super) fn look(&mut self) -> Act {
        self.ask(Phase::Looking, Act::Look)
    }

    /// To the first look of a process: this host must be fit.
    pub(super) fn set_out(&mut self) -> Act {
        match self.prepared {
            true => self.look(),
            false => self.ask(Phase::Preparing, Act::Prepare),
        }
    }

    /// To another hop of the way, without the baton: this host prepares for it first.
    pub(super) fn hop(&mut self, change: Box<Change>) -> Act {
        match self.baton {
            Some(held) if self.rules.hop_gives_the_baton_back => self.give_back(held.take, Without::Hop(change)),
            _ => self.ask(Phase::Hopping, Act::Hop(change)),
        }
    }

    /// The agent stays registered: the others know that it takes part in the whole way.
    fn set_out_again(&mut self, me: Arc<Me>) -> Act {
        let (rules, process) = (self.rules, self.process);
        let (is_registered, interrupted) = (self.is_registered, self.interrupted);
        *self = Self { is_registered, interrupted, ..Self::new(me, rules, process) };
        self.set_out()
    }

    pub(super) fn hand_over_failed(&mut self, member: MemberId, why: Arc<str>) -> Act {
        self.hand_overs += 1;
        match self.hand_overs < HAND_OVERS {
            true => self.look(),
            false => self.leave(Ending::HandOver { member, why }),
        }
    }

    /// Every wait begins by giving the baton back.
    pub(super) fn rest(&mut self, wait: Wait) -> Act {
        match self.baton {
            Some(held) if self.rules.baton_is_dropped_to_wait => self.give_back(held.take, Without::Rest(wait)),
            _ => self.ask(Phase::Waiting(wait.clone()), Act::Wait(wait)),
        }
    }

    pub(super) fn settle(&mut self, direction: Direction) -> Act {
        match self.baton {
            Some(held) => self.give_back(held.take, Without::Settle(direction)),
            None => self.ask(Phase::Settling(direction), Act::AwaitSettled { back: direction == Direction::Back }),
        }
    }

    /// Ends, after giving the baton back.
    pub(super) fn leave(&mut self, ending: Ending) -> Act {
        match self.baton {
            Some(held) => self.give_back(held.take, Without::Leave(ending)),
            None => self.ask(Phase::Ended, Act::Exit(ending)),
        }
    }

    pub(super) fn give_back(&mut self, take: TakeId, then: Without) -> Act {
        self.ask(Phase::GivingBack(take, then), Act::GiveBack(take))
    }

    /// The lease is gone, and with it a sending of the same taking that might still have landed.
    fn given_back(&mut self, take: TakeId, then: Without, event: &Event) -> Act {
        if *event == (Event::Unknown { give_up: false }) && self.rules.unknown_is_asked_again {
            return self.give_back(take, then);
        }
        self.baton = None;
        match then {
            Without::Rest(wait) => self.rest(wait),
            Without::Settle(direction) => self.settle(direction),
            Without::Hop(change) => self.hop(change),
            Without::Leave(ending) => self.leave(ending),
        }
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) -> Act {
        self.leave(Ending::Refused(refusal))
    }

    /// Notes what a look says about this agent itself.
    pub(super) fn note(&mut self, looked: &Looked) {
        let Some(keys) = &looked.keys else { return };
        if keys.baton.as_ref().map(|baton| baton.created) != self.baton.map(|held| held.created) {
            self.baton = None;
        }
        let run = keys.run.as_ref().map(|run| &run.value);
        if let Some(run) = run.filter(|run| *run.intent == *self.me.intent && !run.is_over()) {
            self.joined = Some(run.id);
            self.changes_minor = run.changes_minor;
            // It was for the beginning, and what it warns of was told.
            self.evidence = None;
        }
    }

    pub(super) fn next(&self, looked: &Looked, in_hand: Option<AttemptId>) -> Option<Next> {
        Some(plan::next(&self.case(looked, in_hand)?))
    }

    /// What a person should know of what this look found.
    pub fn warnings(&self, looked: &Looked) -> Vec<Warning> {
        self.case(looked, None).map_or_else(Vec::new, |case| plan::warnings(&case))
    }

    /// Whether there is, or may be, something that `agent resume` takes up.
    pub(super) fn is_to_be_resumed(&self, looked: &Looked) -> bool {
        self.case(looked, None).is_none_or(|case| plan::is_to_be_resumed(&case))
    }

    fn case<'a>(&'a self, looked: &'a Looked, in_hand: Option<AttemptId>) -> Option<Case<'a>> {
        let (keys, view) = (looked.keys.as_ref()?, looked.view.as_ref()?);
        let (me, rules, gone, process) = (&*self.me, &self.rules, looked.gone.as_slice(), self.process);
        let (is_window_over, joined, evidence) = (looked.is_window_over, self.joined, self.evidence.as_deref());
        let (survey, join_failure) = (looked.survey.as_ref(), self.join_failure.as_ref());
        let (may_begin, may_resume, fresh) = (self.begins, self.may_resume, looked.fresh);
        Some(Case {
            me,
            rules,
            keys,
            view,
            evidence,
            is_window_over,
            closed_until: looked.closed_until.as_ref(),
            joined,
            in_hand,
            gone,
            process,
            survey,
            join_failure,
            may_begin,
            may_resume,
            fresh,
        })
    }

    fn settled(&mut self, direction: Direction, event: Event) -> Act {
        match event {
            Event::Done => self.ask(Phase::Settling(direction), Act::Look),
            Event::Looked(looked) => self.end_run(direction, *looked),
            Event::Failed(why) => self.leave(Ending::NotSettled(why)),
            _ => self.look(),
        }
    }

    /// The cluster settled, and meanwhile anything may have happened to the run: what was decided before the
    /// wait is decided again on the very run that is to be ended.
    fn end_run(&mut self, direction: Direction, looked: Looked) -> Act {
        self.note(&looked);
        let is_still_over = self.next(&looked, None) == Some(Next::Settle);
        match looked.keys.as_ref().and_then(|keys| keys.run.as_ref()) {
            Some(run) if is_still_over && run.value.is_going_back() == (direction == Direction::Back) => {
                let result = if direction == Direction::Back { RunResult::RolledBack } else { RunResult::Reached };
                self.send(Txn::move_run(run, RunState::Done { result }), Then::Look)
            }
            _ => self.decide(looked),
        }
    }

    pub(super) fn is_mine(&self, attempt: AttemptId) -> bool {
        self.in_hand.is_some_and(|in_hand| in_hand.attempt() == attempt)
    }

    pub(super) fn baton(&self) -> Option<Revision> {
        self.baton.map(|held| held.created)
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    pub(super) fn failed(member: MemberId, why: Arc<str>, left: Left) -> Ending {
        Ending::Step { member, why, left }
    }
}

/// The members to start again; one that was removed from the cluster would only end again, or worse.
pub(super) fn down_members(looked: &Looked) -> Vec<MemberId> {
    looked.down.iter().copied().filter(|member| !looked.removed.contains(member)).collect()
}

#[cfg(test)]
#[path = "agent_test.rs"]
mod tests;

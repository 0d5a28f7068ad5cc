//! The end of a restart: its record goes, and the run says so or is marked.
//!
//! Both are one write, so that nobody finds neither. Source: agent/PROTOCOL.md, R-5, R-8.

use std::sync::Arc;

use proto::MemberId;

use super::{Closing, Restarting};
use crate::{
    journal::restart::{Direction, Entry, InHand, Stage},
    keys::{At, Going, Keys, Run, RunState, txn::Txn},
    machine::{
        act::{Act, Ending, Left, Looked},
        agent::Agent,
        txn_outcome::Then,
    },
    plan::refusal::Wait,
};

impl Agent {
    pub(in crate::machine) fn keep_as_it_is(&mut self, why: Arc<str>) -> Act {
        let ending = Self::failed(self.member(), why, Left::AsItIs);
        self.mark(ending)
    }

    /// Marks the run while the record stays: nobody goes, and the member's own host knows what to repair.
    pub(in crate::machine) fn mark(&mut self, ending: Ending) -> Act {
        self.restarting(Restarting::Marking(ending), Act::Look)
    }

    pub(in crate::machine) fn put_mark(&mut self, ending: Ending, looked: &Looked) -> Act {
        self.note(looked);
        let run = looked.keys.as_ref().and_then(|keys| keys.run.as_ref());
        let Ending::Step { member, why, .. } = &ending else { return self.leave(ending) };
        if self.in_hand.is_some() && looked.keys.as_ref().is_some_and(|keys| !self.stands_in(keys)) {
            // An earlier sending ended the step well: what is wrong with the member came afterwards.
            return self.leave(Ending::Sick { member: *member, why: why.clone() });
        }
        match run {
            Some(run) if run.value.going().is_some() && !matches!(run.value.state, RunState::Failed { .. }) => {
                let state = failed_state(&run.value, *member, why.clone());
                self.send(Txn::move_run(run, state), Then::Mark(ending))
            }
            _ => self.leave(ending),
        }
    }

    /// Whether the step in hand still has its record, or the sign that it was given up.
    fn stands_in(&self, keys: &Keys) -> bool {
        keys.step.iter().chain(keys.abandoned.values()).any(|record| self.is_mine(record.value.attempt))
    }

    pub(in crate::machine) fn end_step(&mut self, failure: Option<Arc<str>>, looked: &Looked) -> Act {
        self.note(looked);
        match &looked.keys {
            Some(keys) => self.end_step_with(failure, keys),
            None if self.is_interrupted() => self.leave_record(),
            None => self.restarting(Restarting::Unread(failure), Act::Wait(Wait::Answer)),
        }
    }

    /// Ends with a record that cannot be deleted now: the next run of this host does it.
    pub(in crate::machine) fn leave_record(&mut self) -> Act {
        let record = self.in_hand.map(|in_hand| in_hand.member());
        self.leave(Ending::NoAnswer { record })
    }

    fn end_step_with(&mut self, failure: Option<Arc<str>>, keys: &Keys) -> Act {
        match (&keys.step, &keys.run) {
            (Some(down), Some(run)) if self.is_mine(down.value.attempt) => {
                let after = self.run_after(run, self.rules.mark_is_one_write.then_some(()).and(failure.as_ref()));
                self.send(Txn::end_step(down.created, run, after), Then::EndStep(failure))
            }
            (Some(down), None) if self.is_mine(down.value.attempt) => {
                self.send(Txn::delete_down(down.created), Then::EndStep(failure))
            }
            _ => self.step_ended(failure),
        }
    }

    /// The run as the end of this step leaves it.
    fn run_after(&self, run: &At<Run>, failure: Option<&Arc<str>>) -> Run {
        let member = self.member();
        let mut after = run.value.clone();
        let is_forward = matches!(self.restart_in_hand(), Some(InHand { stage: Stage::Done(Direction::Forward), .. }));
        after.done.retain(|done| *done != member);
        if is_forward {
            after.done.push(member);
            after.done.sort();
        }
        after.state = match (failure, &after.state) {
            (Some(why), _) if run.value.going().is_some() => failed_state(&run.value, member, why.clone()),
            (None, RunState::Failed { member: marked, was, .. }) if *marked == member => (*was).into(),
            // One that a newer agent has paused stays so.
            (_, state) => state.clone(),
        };
        after
    }

    /// The record is mine but the run has changed: say it again with the new one. Or the record is gone: an
    /// earlier sending did it, or the step was abandoned and its sign is cleared by the planner's rule.
    pub(in crate::machine) fn end_step_refused(&mut self, failure: Option<Arc<str>>, keys: &Keys) -> Act {
        self.end_step_with(failure, keys)
    }

    /// The record is gone; what is left of the step is its last entry in the journal.
    pub(in crate::machine) fn step_ended(&mut self, failure: Option<Arc<str>>) -> Act {
        self.record = None;
        let Some(InHand { step, stage }) = self.restart_in_hand() else { return self.set_out() };
        let was_asked_for = stage == Stage::Done(step.direction);
        let left = match stage {
            Stage::Done(Direction::Back) if !was_asked_for => Left::PutBack,
            _ => Left::AsItWas,
        };
        let closing = match failure {
            Some(why) => Closing::Failed(Self::failed(step.member, why, left)),
            None if was_asked_for => Closing::Well(step.member),
            None => Closing::Undone,
        };
        self.journal(Entry::Forgotten, Restarting::Closing(closing))
    }

    pub(in crate::machine) fn closed(&mut self, closing: Closing) -> Act {
        match closing {
            Closing::Failed(ending) if !self.rules.mark_is_one_write => self.mark(ending),
            Closing::Failed(ending) => self.leave(ending),
            Closing::Well(member) => self.restarting(Restarting::HookAfter, Act::HookAfter(member)),
            Closing::Undone => self.set_out(),
        }
    }
}

/// The most characters of a reason in the run: a key that is too large would stop everybody.
const MOST_WORDS: usize = 2000;

fn failed_state(run: &Run, member: MemberId, why: Arc<str>) -> RunState {
    let why = match why.char_indices().nth(MOST_WORDS) {
        Some((end, _)) => format!("{}…", &why[..end]).into(),
        None => why,
    };
    RunState::Failed { member, why, was: run.going().unwrap_or(Going::Rolling) }
}

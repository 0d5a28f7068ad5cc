//! A restart on another release: hooks, record, check, stop, switch, start, health, end; and
//! the way back when the new binary fails.
//!
//! The record stands from before the stop until the member is ready or put back. Source: agent/PROTOCOL.md,
//!

use std::sync::Arc;

use proto::{MemberId, Revision};

use crate::{
    journal::{
        progress,
        restart::{Direction, Entry, InHand, Step},
    },
    keys::{AttemptId, StepLock, txn::Txn},
    machine::{
        act::{Act, Ending, Event, Left, Looked},
        agent::{Agent, Phase},
        txn_outcome::Then,
    },
    plan::{
        Next, OnFailure,
        action::{Action, Restart},
        no_return, put_back,
    },
    unknown::Unknown,
};

/// How often in a row a stop may be left unconfirmed.
pub(in crate::machine) const UNCONFIRMED: u8 = 5;

/// What is under way within a restart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Restarting {
    /// The `before_node` hooks.
    HookBefore(Restart, AttemptId),
    /// *Planned* is being written.
    Planning(Restart),
    /// The run is read, to put the record with.
    Putting(Restart),
    /// *Stopping* is being written.
    Announcing(Restart),
    /// The last look before the stop.
    Checking(Restart),
    /// The others are asked once more, right before the stop.
    Confirming(Restart),
    /// A step that did nothing is being forgotten.
    Forgetting,
    /// The process is being stopped. With a reason: because its new binary failed.
    Stopping(Direction, Option<Arc<str>>),
    /// Version polls that began before the stop run out.
    Draining(Option<Arc<str>>),
    /// The look that says whether an old binary may be started.
    Judging(Option<Arc<str>>),
    /// Binary and files are being switched.
    Switching(Direction, Option<Arc<str>>),
    /// *Switched* is being written.
    Switched(Direction, Option<Arc<str>>),
    /// *Starting* is being written.
    Starting(Direction, Option<Arc<str>>),
    /// The process is being started.
    Launching(Direction, Option<Arc<str>>),
    /// The member is becoming ready.
    Healing(Direction, Option<Arc<str>>),
    /// The look that says whether a new binary that failed may be stopped.
    LookingBack(Option<Arc<str>>),
    /// *Stopping* the failed new binary is being written.
    TurningRound(Option<Arc<str>>),
    /// *Starting* the new binary again is being written: the way back is closed.
    Keeping(Arc<str>),
    /// It is being started again.
    KeepingUp(Arc<str>),
    /// And may become ready after all: what was wrong with it may be repaired by now.
    KeptUp(Arc<str>),
    Finishing(Option<Arc<str>>),
    /// The run is read, to end the step in it.
    Ending(Option<Arc<str>>),
    /// It could not be read.
    Unread(Option<Arc<str>>),
    /// The step is being forgotten: its record is gone.
    Closing(Closing),
    /// The `after_node` hooks.
    HookAfter,
    /// The switch failed: the binary it came from is put back.
    Unswitching(Direction, Arc<str>),
    /// It is started again, if it has ended.
    Relaunching(Arc<str>),
    Recovering(Arc<str>),
    /// The run is read, to mark it.
    Marking(Ending),
}

/// What comes once a step is forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Closing {
    Failed(Ending),
    /// The member is where it was to go.
    Well(MemberId),
    /// It is back, as a step of an earlier process had failed.
    Undone,
}

impl Agent {
    pub(in crate::machine) fn restarting(&mut self, restarting: Restarting, act: Act) -> Act {
        self.ask(Phase::Restarting(restarting), act)
    }

    pub(in crate::machine) fn journal(&mut self, entry: Entry, restarting: Restarting) -> Act {
        // Every entry written here follows from the phase; one that could not is not written.
        let entry = progress::Entry::Restart(entry);
        if let Ok(in_hand) = progress::advance(self.in_hand, entry) {
            self.in_hand = in_hand;
        }
        self.restarting(restarting, Act::Journal(entry))
    }

    pub(in crate::machine) fn restart_in_hand(&self) -> Option<InHand> {
        self.in_hand?.restart()
    }

    pub(in crate::machine) fn member(&self) -> MemberId {
        self.in_hand.map_or(MemberId::default(), |in_hand| in_hand.member())
    }

    pub(in crate::machine) fn set_about(&mut self, go: Restart, attempt: AttemptId) -> Act {
        self.restarting(Restarting::HookBefore(go, attempt), Act::HookBefore(go.member))
    }

    pub(in crate::machine) fn restart(&mut self, restarting: Restarting, event: Event) -> Act {
        use Restarting as S;
        match (restarting, event) {
            (S::HookBefore(go, attempt), Event::Done) => {
                let step = Step { member: go.member, attempt, direction: go.direction };
                self.journal(Entry::Planned(step), S::Planning(go))
            }
            (S::HookBefore(go, _), Event::Failed(why)) => self.leave(Ending::Hook { member: go.member, why }),
            (S::Planning(go), Event::Done) => self.restarting(S::Putting(go), Act::Look),
            (S::Putting(go), Event::Looked(looked)) => self.put_down(go, &looked),
            (S::Announcing(go), Event::Done) => self.restarting(S::Checking(go), Act::Look),
            (S::Checking(go), Event::Looked(looked)) => self.check(go, &looked),
            (S::Confirming(go), Event::Done) => {
                self.unconfirmed = 0;
                self.stop(go.direction, None)
            }
            (S::Confirming(_), Event::Unconfirmed(why)) => self.unconfirmed(why),
            (S::Confirming(_), Event::Failed(why)) => self.relaunch(why),
            (S::Forgetting, Event::Done) => self.set_out(),
            (S::Stopping(direction, failure), Event::Done) => self.stopped(direction, failure),
            // It may yet end, when nobody looks any more.
            (S::Stopping(_, None), Event::Failed(why)) => self.relaunch(why),
            (S::Stopping(_, Some(failure)), Event::Failed(why)) => {
                self.keep_as_it_is(format!("{failure}; and it could not be stopped: {why}").into())
            }
            (S::Draining(failure), _) => self.restarting(S::Judging(failure), Act::Look),
            (S::Judging(failure), Event::Looked(looked)) => self.judge(failure, &looked),
            (S::Switching(direction, failure), Event::Done) => {
                self.journal(Entry::Switched(direction), S::Switched(direction, failure))
            }
            (S::Switching(direction, None), Event::Failed(why)) => self.unswitch(direction, why),
            (S::Switching(direction, Some(failure)), Event::Failed(why)) => {
                self.unswitch(direction, format!("{failure}; and the old one could not be put back: {why}").into())
            }
            (S::Switched(direction, failure), Event::Done) => {
                self.journal(Entry::Starting(direction), S::Starting(direction, failure))
            }
            (S::Starting(direction, failure), Event::Done) => self.launch(direction, failure),
            (S::Launching(direction, failure), _) => self.await_ready(direction, failure),
            (S::Healing(direction, failure), event) => self.healed(direction, failure, event),
            (S::LookingBack(failure), Event::Looked(looked)) => self.turn_round_after(failure, &looked),
            (S::TurningRound(failure), Event::Done) => self.stop(Direction::Back, failure),
            (S::Keeping(why), Event::Done) => self.start_again(why),
            (S::KeepingUp(why), _) => {
                let act = Act::AwaitReady { member: self.member(), on: Some(Direction::Forward.to()) };
                self.restarting(S::KeptUp(why), act)
            }
            // It was to go forward, and did.
            (S::KeptUp(_), Event::Done) if self.goes_forward() => self.healed(Direction::Forward, None, Event::Done),
            (S::KeptUp(why), _) => {
                let left = match self.me.on_failure {
                    OnFailure::StartAgain => Left::AsItIs,
                    _ => Left::NewBinaryKept,
                };
                self.mark(Self::failed(self.member(), why, left))
            }
            (S::Finishing(failure), Event::Done) => self.restarting(S::Ending(failure), Act::Look),
            (S::Ending(failure), Event::Looked(looked)) => self.end_step(failure, &looked),
            (S::Unread(_), Event::Woke { expired: true }) => self.leave_record(),
            (S::Unread(failure), _) => self.restarting(S::Ending(failure), Act::Look),
            (S::Closing(closing), Event::Done) => self.closed(closing),
            // A step that was repaired ends in a process that has not looked at its own host yet.
            (S::HookAfter, _) => self.set_out(),
            (S::Unswitching(_, why), Event::Failed(_)) => self.keep_as_it_is(why),
            (S::Unswitching(direction, why), _) => self.unswitched(direction, why),
            (S::Relaunching(why), _) => {
                let act = Act::AwaitReady { member: self.member(), on: None };
                self.restarting(S::Recovering(why), act)
            }
            (S::Recovering(why), Event::Done) => self.restarting(S::Ending(Some(why)), Act::Look),
            (S::Recovering(why), Event::Failed(more)) => {
                self.keep_as_it_is(format!("{why}; and then it did not become ready: {more}").into())
            }
            (S::Recovering(why), _) => self.keep_as_it_is(why),
            (S::Marking(ending), Event::Looked(looked)) => self.put_mark(ending, &looked),
            (restarting, _) => self.retry(restarting),
        }
    }

    /// The world answered something else than was asked; only a look can be asked again without harm.
    fn retry(&mut self, restarting: Restarting) -> Act {
        self.restarting(restarting, Act::Look)
    }

    /// Puts the record, if the run is still in a state that lets this member go.
    fn put_down(&mut self, go: Restart, looked: &Looked) -> Act {
        self.note(looked);
        let is_still_next = self.next(looked, None) == Some(Next::Step(Action::Restart(go)));
        let (Some(baton), Some(run)) = (self.baton(), looked.keys.as_ref().and_then(|keys| keys.run.as_ref())) else {
            return self.forget();
        };
        match self.restart_in_hand() {
            Some(in_hand) if is_still_next => {
                let record = self.new_record(in_hand, go);
                self.send(Txn::put_down(baton, run, record, &self.rules), Then::PutStepLock(go))
            }
            _ => self.forget(),
        }
    }

    fn new_record(&self, in_hand: InHand, go: Restart) -> StepLock {
        StepLock {
            member: go.member,
            host: self.me.host,
            host_name: self.me.host_name.clone(),
            attempt: in_hand.step.attempt,
            process: self.process,
            back: go.direction == Direction::Back,
            guarded: None,
            role: None,
            unknown: Unknown::default(),
        }
    }

    pub(in crate::machine) fn record_stands(&mut self, go: Restart, created: Revision) -> Act {
        self.record = Some(created);
        self.journal(Entry::Stopping(go.direction), Restarting::Announcing(go))
    }

    /// The last look: every condition that let the member go must still hold, by the same function.
    fn check(&mut self, go: Restart, looked: &Looked) -> Act {
        self.note(looked);
        let leads = looked.view.as_ref().is_none_or(|view| view.voters().count() > 1 && view.is_leader(go.member));
        let holds = match self.rules.check_asks_everything {
            true => {
                self.is_recorded(looked)
                    && self.holds_baton()
                    && self.next(looked, self.attempt()) == Some(Next::Step(Action::Restart(go)))
            }
            false => true,
        };
        if holds && looked.lease_is_fresh && !leads && !self.is_interrupted() {
            return self.restarting(Restarting::Confirming(go), Act::Confirm(go.member));
        }
        self.undo()
    }

    /// All is looked at again, but not for ever: a voter may be too slow each time.
    fn unconfirmed(&mut self, why: Arc<str>) -> Act {
        self.unconfirmed += 1;
        if self.unconfirmed < UNCONFIRMED {
            return self.undo();
        }
        self.unconfirmed = 0;
        self.relaunch(why)
    }

    pub(in crate::machine) fn attempt(&self) -> Option<AttemptId> {
        self.in_hand.map(|in_hand| in_hand.attempt())
    }

    fn is_recorded(&self, looked: &Looked) -> bool {
        let down = looked.keys.as_ref().and_then(|keys| keys.step.as_ref());
        down.is_some_and(|down| Some(down.value.attempt) == self.attempt())
    }

    /// Takes the record away: its member was not stopped, or is ready again on the binary it had.
    pub(in crate::machine) fn undo(&mut self) -> Act {
        match self.record.take() {
            Some(created) => self.send(Txn::delete_down(created), Then::Undo),
            None => self.forget(),
        }
    }

    pub(in crate::machine) fn forget(&mut self) -> Act {
        self.record = None;
        self.journal(Entry::Forgotten, Restarting::Forgetting)
    }

    fn stop(&mut self, direction: Direction, failure: Option<Arc<str>>) -> Act {
        let stop = Act::Stop(self.member());
        self.restarting(Restarting::Stopping(direction, failure), stop)
    }

    fn stopped(&mut self, direction: Direction, failure: Option<Arc<str>>) -> Act {
        if direction == Direction::Forward || !self.changes_minor || !self.rules.no_return_is_the_start {
            return self.switch(direction, failure);
        }
        self.restarting(Restarting::Draining(failure), Act::AwaitPolls)
    }

    /// Whether the old binary may be started: the new one is gone and no poll of it is in flight, so what
    /// the others say of the cluster version can no longer change.
    fn judge(&mut self, failure: Option<Arc<str>>, looked: &Looked) -> Act {
        let Some(below) = self.me.intent.change.kind().old_starts_below() else {
            return self.switch(Direction::Back, failure);
        };
        let down = self.member();
        let is_open = looked.view.as_ref().is_some_and(|view| no_return::version_has_not_risen(view, down, below));
        match is_open {
            true => self.switch(Direction::Back, failure),
            false => {
                let why = failure.unwrap_or_else(|| Arc::from("the cluster version rose, or a member did not answer"));
                self.keep_new(why)
            }
        }
    }

    fn switch(&mut self, direction: Direction, failure: Option<Arc<str>>) -> Act {
        let act = Act::Switch { member: self.member(), to: direction.to() };
        self.restarting(Restarting::Switching(direction, failure), act)
    }

    fn unswitch(&mut self, direction: Direction, why: Arc<str>) -> Act {
        let act = Act::Switch { member: self.member(), to: direction.from() };
        self.restarting(Restarting::Unswitching(direction, why), act)
    }

    /// The binary from before the switch is in place again. Where that is the new one, which was to be left because
    /// it had failed, it has another chance: there is nothing else to start.
    fn unswitched(&mut self, direction: Direction, why: Arc<str>) -> Act {
        let is_turning_round = self.restart_in_hand().is_some_and(|in_hand| in_hand.step.direction != direction);
        match is_turning_round {
            true => self.keep_new(why),
            false => self.relaunch(why),
        }
    }

    fn goes_forward(&self) -> bool {
        self.restart_in_hand().is_some_and(|in_hand| in_hand.step.direction == Direction::Forward)
    }

    fn keep_new(&mut self, why: Arc<str>) -> Act {
        self.journal(Entry::Starting(Direction::Forward), Restarting::Keeping(why))
    }

    /// Nothing happens to a process that runs; it may become ready yet.
    fn start_again(&mut self, why: Arc<str>) -> Act {
        let start = Act::Start(self.member());
        self.restarting(Restarting::KeepingUp(why), start)
    }

    fn relaunch(&mut self, why: Arc<str>) -> Act {
        let start = Act::Start(self.member());
        self.restarting(Restarting::Relaunching(why), start)
    }

    fn launch(&mut self, direction: Direction, failure: Option<Arc<str>>) -> Act {
        let start = Act::Start(self.member());
        self.restarting(Restarting::Launching(direction, failure), start)
    }

    pub(in crate::machine) fn await_ready(&mut self, direction: Direction, failure: Option<Arc<str>>) -> Act {
        let act = Act::AwaitReady { member: self.member(), on: Some(direction.to()) };
        self.restarting(Restarting::Healing(direction, failure), act)
    }

    pub(in crate::machine) fn healed(&mut self, direction: Direction, failure: Option<Arc<str>>, event: Event) -> Act {
        match event {
            Event::Done => self.journal(Entry::Done(direction), Restarting::Finishing(failure)),
            Event::NoQuorum => {
                let member = self.member();
                self.leave(Ending::NoQuorum { member })
            }
            Event::Failed(why) => match self.me.on_failure {
                OnFailure::PutBack if direction == Direction::Forward => self.turn_round(Some(why)),
                OnFailure::StartAgain if direction == Direction::Forward => self.start_again(why),
                _ => self.keep_as_it_is(failure.unwrap_or(why)),
            },
            _ => self.await_ready(direction, failure),
        }
    }

    /// Leaves the new binary for the old one: because it failed, or because that was asked for.
    pub(in crate::machine) fn turn_round(&mut self, failure: Option<Arc<str>>) -> Act {
        self.restarting(Restarting::LookingBack(failure), Act::Look)
    }

    /// A process that runs may serve, whatever its step lacked, and is stopped only where the cluster can do without it.
    fn turn_round_after(&mut self, failure: Option<Arc<str>>, looked: &Looked) -> Act {
        self.note(looked);
        let member = self.member();
        let below = self
            .me
            .intent
            .change
            .kind()
            .old_starts_below()
            .filter(|_| self.changes_minor && self.rules.no_return_is_the_start);
        let runs = !looked.down.contains(&member);
        let objection = put_back::objection(&self.me, looked.view.as_ref(), member, below);
        match objection.filter(|_| runs && self.rules.put_back_looks_first) {
            None => self.journal(Entry::Stopping(Direction::Back), Restarting::TurningRound(failure)),
            Some(objection) => {
                let failure = failure.unwrap_or_else(|| Arc::from("it did not become ready in its step"));
                let why = format!("{failure}; it runs, and was not stopped to be put back: {objection}").into();
                let left = match objection {
                    put_back::Objection::WayBackIsClosed => Left::NewBinaryKept,
                    _ => Left::AsItIs,
                };
                self.mark(Self::failed(member, why, left))
            }
        }
    }
}

#[cfg(test)]
#[path = "restart_test.rs"]
mod tests;

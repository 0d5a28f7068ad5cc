//! A guarded command: lock, check, command, the host's return, ready, end.
//!
//! It is a restart whose stop and start are the command's. `reboot` returns at once, while the members are still ready: so the
//! step ends neither with the command nor with a signal, but once the host is another boot, or is seen to stay, and its members
//! are ready. Source: agent/PROTOCOL.md, R-1, R-2, R-5, R-13.

use std::sync::Arc;

use proto::{MemberId, Revision};

use crate::{
    journal::{
        guarded::{Command, Entry, InHand, Stage, Step},
        progress,
    },
    keys::{AttemptId, Guarded, Keys, StepLock, txn::Txn},
    machine::{
        act::{Act, Ending, Event, Looked},
        agent::{Agent, Phase, down_members},
        txn_outcome::Then,
    },
    plan::{
        Guard as Asked, Next, Verb,
        action::{Action, Guard},
        refusal::Wait,
    },
    unknown::Unknown,
};

/// What is under way within a guarded step. `failed`: why the command failed, if it did.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Guarding {
    /// *Planned* is being written.
    Planning(Guard),
    /// The run is read, to put the lock with.
    Putting(Guard),
    /// The last look before the command.
    Checking(Guard),
    /// The others are asked once more.
    Confirming,
    /// The command's process is being made; it does nothing yet.
    Spawning,
    /// *Runs* is being written.
    Noting,
    /// The command runs.
    Running(Command),
    /// It has ended; the host may be about to go.
    AwaitingHost { failed: Option<Arc<str>> },
    /// It is looked which members do not run.
    Finding { failed: Option<Arc<str>> },
    /// A member is being started.
    Starting { left: Vec<MemberId>, awaited: Vec<MemberId>, failed: Option<Arc<str>>, began: bool },
    /// This member becomes ready.
    Healing { member: MemberId, left: Vec<MemberId>, failed: Option<Arc<str>>, began: bool },
    /// The keys are read, to end the step in them. `began`: whether the command did.
    Ending { failed: Option<Arc<str>>, began: bool },
    /// They could not be read.
    Unread { failed: Option<Arc<str>>, began: bool },
    /// *Forgotten* is being written.
    Forgetting { failed: Option<Arc<str>>, began: bool },
}

impl Agent {
    fn guarding(&mut self, guarding: Guarding, act: Act) -> Act {
        self.ask(Phase::Guarding(guarding), act)
    }

    fn note_guard(&mut self, entry: Entry, guarding: Guarding) -> Act {
        let entry = progress::Entry::Guarded(entry);
        if let Ok(in_hand) = progress::advance(self.in_hand, entry) {
            self.in_hand = in_hand;
        }
        self.guarding(guarding, Act::Journal(entry))
    }

    pub(in crate::machine) fn plan_guard(&mut self, go: Guard, attempt: AttemptId) -> Act {
        self.note_guard(Entry::Planned(Step { member: go.member, attempt }), Guarding::Planning(go))
    }

    /// Goes on with a step of an earlier process. Where its command began the host may yet go down.
    pub(in crate::machine) fn resume_guard(&mut self, InHand { stage, .. }: InHand) -> Act {
        match stage {
            Stage::Planned => self.end_guard(None, false),
            Stage::Runs(command) => self.await_host(command, None),
        }
    }

    pub(in crate::machine) fn guard(&mut self, guarding: Guarding, event: Event) -> Act {
        use Guarding as G;
        match (guarding, event) {
            (G::Planning(go), Event::Done) => self.guarding(G::Putting(go), Act::Look),
            (G::Putting(go), Event::Looked(looked)) => self.put_guard(go, &looked),
            (G::Checking(go), Event::Looked(looked)) => self.check_guard(go, &looked),
            (G::Confirming, Event::Done) => self.guarding(G::Spawning, Act::Spawn),
            (G::Spawning, Event::Spawned(command)) if self.rules.guard_notes_the_command => {
                self.note_guard(Entry::Runs(command), G::Noting)
            }
            (G::Spawning, Event::Spawned(command)) => self.guarding(G::Running(command), Act::Command),
            (G::Noting, Event::Done) => self.begin_command(),
            (G::Running(command), Event::Done) => self.await_host(command, None),
            (G::Running(command), Event::Failed(why)) => self.await_host(command, Some(why)),
            // It was not let begin.
            (G::Running(_), Event::Unconfirmed(why)) => self.unconfirmed_guard(why),
            (G::Confirming, Event::Unconfirmed(why)) => self.unconfirmed_guard(why),
            (G::Confirming | G::Spawning, Event::Failed(why)) => self.end_guard(Some(why), false),
            (G::AwaitingHost { failed }, _) => self.guarding(G::Finding { failed }, Act::Look),
            (G::Finding { failed }, Event::Looked(looked)) => self.start_guarded(failed, &looked),
            (G::Starting { left, awaited, failed, began }, _) => self.start_next_guarded(left, awaited, failed, began),
            (G::Healing { left, failed, began, .. }, Event::Done) => self.heal_next_guarded(left, failed, began),
            (G::Healing { member, .. }, Event::NoQuorum) => self.leave(Ending::NoQuorum { member }),
            (G::Healing { member, .. }, Event::Failed(why)) => self.leave(Ending::Sick { member, why }),
            (G::Ending { failed, began }, Event::Looked(looked)) => self.guard_ends(failed, began, &looked),
            (G::Unread { .. }, Event::Woke { expired: true }) => self.leave_record(),
            (G::Unread { failed, began }, _) => self.end_guard(failed, began),
            (G::Forgetting { failed, began }, Event::Done) => self.guard_ended(failed, began),
            // The world answered something else than was asked; only a look can be asked again without harm.
            (guarding, _) => self.guarding(guarding, Act::Look),
        }
    }

    /// Puts the lock, if the host may still go.
    fn put_guard(&mut self, go: Guard, looked: &Looked) -> Act {
        self.note(looked);
        let is_still_next = self.next(looked, None) == Some(Next::Step(Action::Guard(go)));
        let (Some(baton), Some(keys)) = (self.baton(), &looked.keys) else { return self.forget_guard(None, false) };
        match self.guard_in_hand() {
            Some(in_hand) if is_still_next => {
                let record = self.guard_record(in_hand.step);
                self.send(Txn::put_guard(baton, keys.run.as_ref(), record, &self.rules), Then::PutGuard(go))
            }
            _ => self.forget_guard(None, false),
        }
    }

    fn guard_record(&self, Step { member, attempt }: Step) -> StepLock {
        let mut beside: Vec<_> = self.me.seats.members().filter(|own| *own != member).collect();
        beside.sort();
        StepLock {
            member,
            host: self.me.host,
            host_name: self.me.host_name.clone(),
            attempt,
            process: self.process,
            back: false,
            guarded: Some(Box::new(Guarded { beside, command: self.me.command.clone() })),
            role: None,
            unknown: Unknown::default(),
        }
    }

    pub(in crate::machine) fn guard_stands(&mut self, go: Guard, created: Revision) -> Act {
        self.record = Some(created);
        self.guarding(Guarding::Checking(go), Act::Look)
    }

    /// The last look: every condition that let the host go must still hold, by the same function. A member of it that
    /// leads again would have to hand over, which is another step than this one.
    fn check_guard(&mut self, go: Guard, looked: &Looked) -> Act {
        self.note(looked);
        let is_recorded = looked.keys.as_ref().is_some_and(|keys| self.lock_of(keys).is_some());
        let is_next = self.next(looked, self.attempt()) == Some(Next::Step(Action::Guard(go)));
        let holds = !self.rules.check_asks_everything || (is_recorded && self.holds_baton() && is_next);
        match holds && looked.lease_is_fresh && !self.is_interrupted() {
            true => self.guarding(Guarding::Confirming, Act::Confirm(go.member)),
            false => self.end_guard(None, false),
        }
    }

    fn unconfirmed_guard(&mut self, why: Arc<str>) -> Act {
        self.unconfirmed += 1;
        match self.unconfirmed < super::restart::UNCONFIRMED {
            true => self.end_guard(None, false),
            false => self.end_guard(Some(why), false),
        }
    }

    fn begin_command(&mut self) -> Act {
        match self.guard_in_hand().map(|in_hand| in_hand.stage) {
            Some(Stage::Runs(command)) => self.guarding(Guarding::Running(command), Act::Command),
            _ => self.end_guard(None, false),
        }
    }

    fn await_host(&mut self, command: Command, failed: Option<Arc<str>>) -> Act {
        match self.rules.guard_awaits_the_host {
            true => self.guarding(Guarding::AwaitingHost { failed }, Act::AwaitHost(command)),
            false => self.guarding(Guarding::Finding { failed }, Act::Look),
        }
    }

    fn start_guarded(&mut self, failed: Option<Arc<str>>, looked: &Looked) -> Act {
        self.note(looked);
        let is_here = |member: &MemberId| !looked.removed.contains(member);
        let awaited = self.me.seats.members().filter(is_here).collect();
        let left = down_members(looked);
        self.start_next_guarded(left, awaited, failed, true)
    }

    fn start_next_guarded(
        &mut self,
        mut left: Vec<MemberId>,
        awaited: Vec<MemberId>,
        failed: Option<Arc<str>>,
        began: bool,
    ) -> Act {
        match left.pop() {
            Some(member) => self.guarding(Guarding::Starting { left, awaited, failed, began }, Act::Start(member)),
            None => self.heal_next_guarded(awaited, failed, began),
        }
    }

    fn heal_next_guarded(&mut self, mut left: Vec<MemberId>, failed: Option<Arc<str>>, began: bool) -> Act {
        match left.pop() {
            Some(member) => {
                self.guarding(Guarding::Healing { member, left, failed, began }, Act::AwaitReady { member, on: None })
            }
            None => self.end_guard(failed, began),
        }
    }

    fn end_guard(&mut self, failed: Option<Arc<str>>, began: bool) -> Act {
        self.guarding(Guarding::Ending { failed, began }, Act::Look)
    }

    fn guard_ends(&mut self, failed: Option<Arc<str>>, began: bool, looked: &Looked) -> Act {
        self.note(looked);
        let down = down_members(looked);
        match &looked.keys {
            Some(keys) => self.end_guard_in(failed, began, keys),
            None if self.is_interrupted() => self.leave_record(),
            // It may be this host's own members whose answer is missing (I-10).
            None if !down.is_empty() => self.start_next_guarded(down.clone(), down, failed, began),
            None => self.guarding(Guarding::Unread { failed, began }, Act::Wait(Wait::Answer)),
        }
    }

    /// The lock goes, or the sign that it was given up.
    pub(in crate::machine) fn end_guard_in(&mut self, failed: Option<Arc<str>>, began: bool, keys: &Keys) -> Act {
        let then = Then::EndGuard { failed: failed.clone(), began };
        if let Some(created) = self.lock_of(keys) {
            return self.send(Txn::delete_down(created), then);
        }
        let given_up = keys.abandoned.iter().find(|(_, record)| self.is_mine(record.value.attempt));
        match given_up {
            Some((member, record)) => self.send(Txn::clear_abandoned(*member, record.created), then),
            None => self.forget_guard(failed, began),
        }
    }

    fn lock_of(&self, keys: &Keys) -> Option<Revision> {
        keys.step.as_ref().filter(|lock| self.is_mine(lock.value.attempt)).map(|lock| lock.created)
    }

    pub(in crate::machine) fn forget_guard(&mut self, failed: Option<Arc<str>>, began: bool) -> Act {
        self.record = None;
        self.note_guard(Entry::Forgotten, Guarding::Forgetting { failed, began })
    }

    /// What was asked for is done, or cannot be; what an earlier process left, or was not let begin, is looked at anew. What
    /// was begun before this process set out is no command of its own.
    fn guard_ended(&mut self, failed: Option<Arc<str>>, began: bool) -> Act {
        let is_asked_for = match self.me.verb {
            Verb::Guard(Asked::Finish) => true,
            Verb::Guard(_) => self.prepared,
            _ => false,
        };
        match (is_asked_for, began, failed) {
            (true, true, failed) => self.leave(Ending::Guarded { failed }),
            (true, false, Some(why)) => self.leave(Ending::Unprepared(why)),
            _ => self.set_out(),
        }
    }

    fn guard_in_hand(&self) -> Option<InHand> {
        self.in_hand?.guarded()
    }
}

#[cfg(test)]
#[path = "guard_test.rs"]
mod tests;

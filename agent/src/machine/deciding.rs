//! What follows from a look: the planner's answer, turned into acts and Txns.

use std::sync::Arc;

use proto::{ClusterVersion, MemberId};

use super::{
    act::{Act, Ending, Looked},
    agent::{Agent, Phase, down_members},
    txn_outcome::Then,
};
use crate::{
    journal::restart::Direction,
    keys::{AttemptId, Baton, Keys, Run, RunId, TakeId, txn::Txn},
    observe::view::ClusterView,
    plan::{
        self, Guard as Asked, Next, Verb,
        action::{Action, Guard, Restart},
        hops,
        membership::Move,
        refusal::{Refusal, Wait},
    },
    unknown::Unknown,
};

/// How often leadership is offered before an agent gives up.
pub(super) const HAND_OVERS: u8 = 3;

impl Agent {
    pub(super) fn decide(&mut self, looked: Looked) -> Act {
        self.note(&looked);
        let down = down_members(&looked);
        if !down.is_empty() && !self.only_asks() {
            return self.revive(down);
        }
        if self.interrupted {
            return self.leave(Ending::Interrupted);
        }
        if let Some(twin) = self.twin(&looked) {
            return self.refuse(twin);
        }
        if let Some(act) = self.register(&looked) {
            return act;
        }
        if let Some(created) = self.forgotten_baton(&looked).filter(|_| !self.only_asks()) {
            return self.send(Txn::clear_baton(created), Then::Look);
        }
        if let Some(ending) = self.taken_back(&looked) {
            return self.leave(ending);
        }
        self.sees_own_data(&looked);
        if let Some(act) = self.note_backup(&looked) {
            return act;
        }
        let Some(next) = self.next(&looked, None) else { return self.unanswered(&looked) };
        if self.me.verb == Verb::Resume && self.may_resume {
            let takes_up = matches!(next, Next::Move { .. } | Next::Members(Move::Note(_)));
            self.may_resume = self.is_to_be_resumed(&looked) && !takes_up;
        }
        let may_be_behind = self.may_be_behind(&next);
        let had_looked_again = std::mem::replace(&mut self.looked_again, may_be_behind);
        if may_be_behind && !had_looked_again {
            return self.look();
        }
        let is_fresh = looked.lease_is_fresh;
        let membership = looked.survey.as_ref().zip(looked.view.as_ref());
        let membership = membership.map(|(survey, view)| plan::membership::initial(&self.me.intent, view, survey));
        let membership = membership.filter(|_| self.me.intent.change.changes_members()).map(Arc::new);
        let Looked { keys: Some(keys), view: Some(view), fresh, .. } = looked else { return self.look() };
        match next {
            Next::Refuse(refusal) => self.refuse(refusal),
            Next::Wait(wait) if self.only_asks() => self.leave(Ending::NotYet(wait)),
            Next::Wait(wait) => self.rest(wait),
            Next::Examine => self.ask(Phase::Examining, Act::Examine),
            Next::Hop(change) => self.hop(change),
            Next::Finish(finish) => self.leave(Ending::Finished(finish)),
            Next::CleanUp(_) if self.only_asks() => self.leave(Ending::NotYet(Wait::Answer)),
            Next::CleanUp(txn) => self.send(txn, Then::Look),
            Next::Adopt(member) if self.only_asks() => self.leave(Ending::NotYet(Wait::Ready { member })),
            Next::Adopt(member) => self.adopt(&keys, member, &view),
            Next::Settle => {
                let going_back = keys.run.is_some_and(|run| run.value.is_going_back());
                self.settle(if going_back { Direction::Back } else { Direction::Forward })
            }
            Next::Begin => {
                let run = plan::target::new_run(RunId(fresh), &self.me.intent, &view);
                let run = Run { begun_by: Some(self.me.host_name.clone()), membership, ..run };
                self.send(Txn::begin(keys.run.as_ref(), run), Then::Look)
            }
            Next::Move { to, at_rest } => match &keys.run {
                Some(run) if at_rest => self.send(Txn::move_run_at_rest(run, to, &self.rules), Then::Look),
                Some(run) => self.send(Txn::move_run(run, to), Then::Look),
                None => self.look(),
            },
            Next::Downgrade(to) => self.downgrade(to, fresh),
            Next::Step(Action::Restart(go)) => self.go(go, fresh),
            Next::Step(Action::Guard(go)) => self.go_guarded(go, fresh),
            Next::Members(next) => self.change_members(next, &keys, (is_fresh, fresh)),
            Next::BackUp => self.back_up(&keys, fresh),
        }
    }

    /// The keys of a look are read before its members answer. Meanwhile this hop may have ended, and a member may be on the next one.
    fn may_be_behind(&self, next: &Next) -> bool {
        match next {
            Next::Refuse(Refusal::LeaderVersion { release, .. } | Refusal::MemberVersion { release, .. }) => {
                hops::is_ahead(&self.me.intent, release)
            }
            _ => false,
        }
    }

    pub(super) fn unanswered(&mut self, looked: &Looked) -> Act {
        match looked.view.as_ref().is_some_and(|view| view.leader().is_some()) {
            true => self.rest(Wait::Answer),
            false => self.refuse(Refusal::NoLeader),
        }
    }

    fn adopt(&mut self, keys: &Keys, member: MemberId, view: &ClusterView) -> Act {
        match &keys.step {
            Some(record) if view.are_ready(record.value.members()) => {
                self.send(Txn::delete_down(record.created), Then::Look)
            }
            _ => self.rest(Wait::Ready { member }),
        }
    }

    fn go(&mut self, go: Restart, fresh: u128) -> Act {
        if self.baton.is_none() {
            return self.take_baton(TakeId(fresh));
        }
        match go.hand_over {
            // Whoever takes the lead and gives it straight back would have it offered for ever.
            Some(_) if self.hand_overs >= HAND_OVERS => {
                let why = format!("it leads again after {HAND_OVERS} hand-overs").into();
                self.leave(Ending::HandOver { member: go.member, why })
            }
            Some(to) => self.ask(Phase::HandingOver(go.member), Act::HandOver { from: go.member, to }),
            None => {
                self.hand_overs = 0;
                self.set_about(go, AttemptId(fresh))
            }
        }
    }

    fn go_guarded(&mut self, go: Guard, fresh: u128) -> Act {
        if self.only_asks() {
            return self.leave(Ending::MayGo);
        }
        if self.baton.is_none() {
            return self.take_baton(TakeId(fresh));
        }
        match go.hand_over {
            Some((member, _)) if self.hand_overs >= HAND_OVERS => {
                let why = format!("it leads again after {HAND_OVERS} hand-overs").into();
                self.leave(Ending::HandOver { member, why })
            }
            Some((from, to)) => self.ask(Phase::HandingOver(from), Act::HandOver { from, to }),
            None => {
                self.hand_overs = 0;
                self.plan_guard(go, AttemptId(fresh))
            }
        }
    }

    /// `agent guard --check`, which changes nothing.
    pub(super) fn only_asks(&self) -> bool {
        self.me.verb == Verb::Guard(Asked::Check)
    }

    /// The call compares nothing, so the baton is in hand meanwhile: nobody takes a member down by what it undoes.
    fn downgrade(&mut self, to: Option<ClusterVersion>, fresh: u128) -> Act {
        match self.baton.is_none() && self.rules.downgrade_takes_the_baton {
            true => self.take_baton(TakeId(fresh)),
            false => self.ask(Phase::Downgrading, Act::Downgrade(to)),
        }
    }

    /// Whoever has the baton makes it, so that not every host does.
    fn back_up(&mut self, keys: &Keys, fresh: u128) -> Act {
        match (&keys.run, self.baton) {
            (None, _) => self.look(),
            (Some(_), None) => self.take_baton(TakeId(fresh)),
            (Some(run), Some(_)) => self.ask(Phase::BackingUp(run.value.id), Act::BackUp),
        }
    }

    /// What was saved is written down whatever comes next. Without the baton it is forgotten: another may have been made since.
    fn note_backup(&mut self, looked: &Looked) -> Option<Act> {
        let keys = looked.keys.as_ref()?;
        let (of, backup) = self.backup.take()?;
        let (run, baton) = keys.run.as_ref().zip(self.baton)?;
        let is_owed = run.value.id == of && run.value.backup.is_none() && !run.value.is_over();
        is_owed.then(|| {
            let txn = Txn::note_backup(baton.created, run, backup.clone());
            self.backup = Some((of, backup));
            self.send(txn, Then::Look)
        })
    }

    pub(super) fn take_baton(&mut self, take: TakeId) -> Act {
        let (host, host_name) = (self.me.host, self.me.host_name.clone());
        let baton = Baton { host, process: self.process, host_name, take, unknown: Unknown::default() };
        self.send(Txn::take_baton(baton), Then::Baton { take, may_land: false })
    }
}

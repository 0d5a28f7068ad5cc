//! What must never happen, held against what happens: at each look that ends in a call, at each call that takes effect, at each act
//! on data, and in every state.

use super::{
    scenario::Kind,
    world::{Call, Host, Listed, Seen, State, World},
};
use agent::{
    keys::{
        RunState,
        membership::{Join, Membership, RoleChange, Stage},
        txn::{Op, Txn},
    },
    machine::act::{Act, Ending},
    plan::{Finish, membership::RoleStep},
};
use proto::MemberId;

/// What must never happen, and did.
pub type Violation = &'static str;

pub const TOO_MANY: Violation = "more voters than the target allows";
pub const TOO_FEW: Violation = "fewer voters than the target allows";
pub const NOT_IN_SYNC: Violation = "a promotion of a learner that was not ready";
pub const VOTER_NOT_READY: Violation = "a promotion while a voter was not ready";
pub const GIVEN_UP: Violation = "a newcomer that was given up was promoted";
pub const STRANGER: Violation = "a member was removed that was to stay";
pub const NOT_REPLACED: Violation = "a healthy voter was removed before its replacement voted";
pub const BELOW: Violation = "a removal would leave too few that are ready";
pub const OTHER_SICK: Violation = "a ready voter was to go though another was not ready";
pub const LISTED_DATA: Violation = "the data of a member that is listed was put aside";
pub const FORGOT: Violation = "a listed member that had begun was started on an emptied directory";
pub const LISTED_TWICE: Violation = "a newcomer was to be added though it was listed";
pub const TWO_JOINS: Violation = "more newcomers than places";
pub const LOST_JOIN: Violation = "a newcomer has begun, and the run does not know of it";
pub const LOST_STEP: Violation = "a step was gone while a call of it could still take effect";
pub const NOT_DONE: Violation = "a run was done before its target was reached";
pub const STUCK: Violation = "from here nobody can reach the end";

pub fn check(holds: bool, otherwise: Violation) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(otherwise) }
}

impl Seen {
    fn voters(&self) -> impl Iterator<Item = &(Listed, State)> {
        self.members.iter().filter(|(one, _)| !one.is_learner)
    }

    fn of(&self, id: MemberId) -> Option<&(Listed, State)> {
        self.members.iter().find(|(one, _)| one.id == id)
    }
}

impl World {
    fn membership(&self) -> Option<&Membership> {
        self.keys.run.as_ref()?.value.membership.as_deref()
    }

    fn join_of(&self, id: MemberId) -> Option<&Join> {
        self.membership()?.joins.iter().find(|join| join.member == Some(id))
    }

    fn is_given_up(&self, id: MemberId) -> bool {
        self.join_of(id).is_some_and(|join| matches!(join.stage, Stage::GivenUp { .. }))
    }

    fn step_role(&self) -> Option<(MemberId, RoleChange)> {
        let lock = &self.keys.step.as_ref()?.value;
        Some((lock.member, lock.role?))
    }

    /// A call that this look has decided on.
    pub fn judge_check(&self, host: usize, seen: &Seen) -> Result<(), Violation> {
        match &self.process(host).act {
            Act::AddMember(_) => check(!seen.members.iter().any(|(one, _)| one.seat == host), LISTED_TWICE),
            Act::ChangeRole(RoleStep { member, change: RoleChange::Promote }) => {
                let (_, state) = seen.of(*member).ok_or("a promotion of a member that was not seen")?;
                check(*state == State::Ready, NOT_IN_SYNC)?;
                check(!self.is_given_up(*member), GIVEN_UP)?;
                check(seen.voters().all(|(_, state)| *state == State::Ready), VOTER_NOT_READY)
            }
            Act::ChangeRole(RoleStep { member, change: RoleChange::Leave }) => match seen.of(*member) {
                Some((one, state)) if !one.is_learner => match self.is_called() {
                    true => self.judge_leave(one, seen),
                    false => self.judge_begun(one, *state, seen),
                },
                _ => Ok(()),
            },
            // The first call comes next, and from here on it is not taken back.
            Act::Send(txn) if self.says_called(txn) => match self.step_role().and_then(|(id, _)| seen.of(id)) {
                Some((one, state)) if self.is_leave() => self.judge_begun(one, *state, seen),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Whether a call of the step that stands may have been sent before; of one that is taken back it makes no difference.
    fn is_called(&self) -> bool {
        let (Some(membership), Some(step)) = (self.membership(), &self.keys.step) else { return true };
        membership.called == Some(step.value.attempt) || !membership.leaving.contains(&step.value.member)
    }

    fn is_leave(&self) -> bool {
        matches!(self.step_role(), Some((_, RoleChange::Leave)))
    }

    fn says_called(&self, txn: &Txn) -> bool {
        let [Op::PutRun(run)] = txn.ops.as_slice() else { return false };
        let says = run.membership.as_ref().and_then(|membership| membership.called);
        says.is_some() && says != self.membership().and_then(|membership| membership.called)
    }

    fn judge_leave(&self, leaver: &Listed, seen: &Seen) -> Result<(), Violation> {
        let stays = || seen.voters().filter(|(one, _)| one.id != leaver.id);
        let ready = stays().filter(|(_, state)| *state == State::Ready).count();
        check(ready > stays().count() / 2, BELOW)
    }

    /// Nothing was called yet, and the next call may come at any later time.
    fn judge_begun(&self, leaver: &Listed, state: State, seen: &Seen) -> Result<(), Violation> {
        let stays = || seen.voters().filter(|(one, _)| one.id != leaver.id);
        self.judge_leave(leaver, seen)?;
        if state != State::Ready {
            return Ok(());
        }
        check(stays().all(|(_, state)| *state == State::Ready), OTHER_SICK)?;
        match self.scenario.kind {
            // One that is taken back has replaced nobody.
            Kind::Replace { member, by } if leaver.seat == member && member != by => {
                check(stays().any(|(one, _)| one.seat == by), NOT_REPLACED)
            }
            _ => Ok(()),
        }
    }

    /// A promotion takes effect.
    pub fn judge_promotion(&self, id: MemberId) -> Result<(), Violation> {
        // One that comes late finds a step that has turned, and that removes it: then it does no harm.
        let is_turned = self.step_role() == Some((id, RoleChange::Leave));
        check(!self.is_given_up(id) || is_turned, GIVEN_UP)?;
        let (scenario, voters) = (&self.scenario, self.voters().count() + 1);
        let most = match scenario.kind {
            Kind::Scale(_) => scenario.voters.max(scenario.target()),
            Kind::Replace { .. } => scenario.voters + 1,
        };
        check(voters <= most || scenario.faults.has_persons(), TOO_MANY)
    }

    /// A removal by our hand takes effect.
    pub fn judge_removal(&self, one: &Listed) -> Result<(), Violation> {
        let is_leaving = self.membership().is_some_and(|membership| membership.leaving.contains(&one.id));
        let is_turned = self.step_role() == Some((one.id, RoleChange::Leave));
        let is_taken_back = self.is_given_up(one.id) || is_turned || self.is_leftover(one);
        check(is_leaving || is_taken_back, STRANGER)?;
        if one.is_learner || self.scenario.faults.has_persons() {
            return Ok(());
        }
        let (scenario, left) = (&self.scenario, self.voters().count() - 1);
        let fewest = match scenario.kind {
            Kind::Scale(_) => scenario.voters.min(scenario.target()),
            // A dead one may go first.
            Kind::Replace { .. } => scenario.voters - 1,
        };
        check(left >= fewest, TOO_FEW)
    }

    /// What a try that was given up may have left, or may have come of it late.
    fn is_leftover(&self, one: &Listed) -> bool {
        let joins = self.membership().map_or(&[][..], |membership| &membership.joins);
        let is_given_up = |join: &Join| {
            matches!(join.stage, Stage::GivenUp { .. }) && join.peer_urls == [super::scenario::url_of(one.seat)]
        };
        one.is_learner && !one.is_named && joins.iter().any(is_given_up)
    }

    pub fn judge_aside(&self, host: &Host) -> Result<(), Violation> {
        check(host.data.is_none_or(|id| !self.is_listed(id)), LISTED_DATA)
    }

    /// A process begins without data.
    pub fn judge_begin(&self, id: MemberId) -> Result<(), Violation> {
        check(!self.member(id).is_some_and(|one| one.is_begun), FORGOT)
    }

    /// What holds in every state.
    pub fn judge_state(&self, before: &World) -> Result<(), Violation> {
        check(
            self.membership().is_none_or(|membership| membership.joins.len() <= self.scenario.max_learners),
            TWO_JOINS,
        )?;
        let is_known = |one: &Listed| self.join_of(one.id).is_some() || self.is_expected(one.id);
        let newcomers = self.listed.iter().filter(|one| one.is_begun && one.is_learner);
        check(newcomers.clone().all(is_known) || self.scenario.faults.has_persons(), LOST_JOIN)?;
        check(self.calls.iter().all(|call| self.is_covered(*call)), LOST_STEP)?;
        self.judge_called(before)?;
        let is_done = |world: &World| {
            let run = world.keys.run.as_ref().map(|run| &run.value.state);
            matches!(run, Some(RunState::Done { .. }))
        };
        if is_done(self) && !is_done(before) {
            let is_clean = self.keys.step.is_none() && self.membership().is_none_or(|one| one.joins.is_empty());
            self.judge_holds_left()?;
            check(is_clean && (self.is_reached() || self.scenario.faults.has_persons()), NOT_DONE)?;
        }
        Ok(())
    }

    fn is_expected(&self, id: MemberId) -> bool {
        self.membership().is_some_and(|membership| membership.is_expected(id))
    }

    /// Whether a call under way is one that the step, or a join that was given up, still answers for; or can do nothing.
    fn is_covered(&self, call: Call) -> bool {
        match call {
            Call::Add(_) => true,
            Call::Promote(id) => {
                let is_over = self.member(id).is_none_or(|one| !one.is_learner);
                is_over || self.step_role().is_some_and(|(member, _)| member == id)
            }
            Call::Remove(id) => {
                let is_taken_back = self.is_given_up(id) || self.member(id).is_some_and(|one| self.is_leftover(one));
                !self.is_listed(id) || is_taken_back || self.step_role() == Some((id, RoleChange::Leave))
            }
        }
    }

    /// Whether the run that stands may be a second one of the same command: what came back by itself was lost once more. Whoever ends
    /// then may have been of the first, which was judged as it was done.
    fn may_be_anew(&self) -> bool {
        let comes_back = matches!(self.scenario.kind, Kind::Replace { member, by } if member == by);
        comes_back && self.left.vanish < self.scenario.faults.vanish
    }

    /// What an agent says at its end.
    pub fn judge_exit(&self, ending: &Ending) -> Result<(), Violation> {
        let is_done = || {
            let run = self.keys.run.as_ref().map(|run| &run.value.state);
            matches!(run, Some(RunState::Done { .. }))
        };
        match ending {
            Ending::Finished(Finish::Done(_)) => {
                let is_there = is_done() || self.may_be_anew() || self.scenario.faults.has_persons();
                check(is_there, "ended a run that was not done")
            }
            Ending::Finished(Finish::NothingToDo) => {
                let is_there = self.is_reached() || is_done() || self.scenario.faults.has_persons();
                check(is_there, "said there was nothing to do")
            }
            _ => Ok(()),
        }
    }
}

//! What can happen next in a world, and what comes of it.

use std::rc::Rc;

use super::{
    held::ByHand,
    judge::Violation,
    scenario::url_of,
    world::{Call, Late, Listed, NOBODYS, Process, World},
};
use agent::{
    keys::{
        At as Stamped, Run,
        membership::{Join, Stage},
        txn::{Op, Txn},
    },
    machine::act::Act,
    plan::{Verb, refusal::Wait},
};
use proto::MemberId;

/// A host, a member's place in the list, or a place in another list.
pub type At = u8;

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// An agent's act is done and answered.
    Act(At, Outcome),
    /// An agent is started.
    Start(At, Verb),
    /// A Txn that was under way is done or refused.
    Land(At),
    /// A call that was under way arrives.
    Arrive(At),
    /// A quorum without a leader elects one.
    Elect(At),
    /// Of the leases that nobody keeps alive this one runs out.
    Lapse(At),
    /// A learner has taken in what there is, and says its name.
    CatchesUp(At),
    /// The process of a former member is told, and ends.
    Ends(At),
    /// A supervisor starts what has ended.
    ComesUp(At),
    /// A person takes a learner out that is nobody's.
    RemoveStray(At),
    /// `agent abandon SEAT`: the newcomer is given up, removed, and forgotten.
    GiveUp,
    RemoveGivenUp,
    Forget,
    Kill(At),
    Freeze(At),
    LoseKey(At),
    LoseBaton,
    Crash(At),
    Vanish(At),
    Die(At),
    LeaderMoves(At),
    PersonRemoves(At),
    PersonAdds,
    PersonPromotes(At),
    /// `agent abandon SEAT` though the host may be at work.
    Abandon,
    /// A host's record is changed by hand.
    ByHand(At, ByHand),
}

/// How an act ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Plain,
    /// The first half of a look.
    Read,
    /// A look made after the time in which other agents come.
    Gathered,
    /// Not answered, and not done.
    UnknownNo,
    /// Not answered, though done.
    UnknownYes,
    /// Not answered, and not done yet.
    UnknownLate,
    /// Nobody made progress for too long.
    Expired,
    /// What is given up in the end as nobody answers: no quorum stands.
    OutOfTime,
    Fails,
    /// Said to have failed, though done in part.
    FailsDone,
}

impl Move {
    /// Whether this is a fault, or a person's own decision: what liveness must do without.
    pub fn is_fault(self) -> bool {
        use Outcome::{Gathered, OutOfTime, Plain, Read};
        match self {
            Self::Act(_, outcome) => !matches!(outcome, Plain | Read | Gathered | OutOfTime),
            Self::Start(..) | Self::Land(_) | Self::Arrive(_) | Self::Elect(_) | Self::Lapse(_) => false,
            Self::CatchesUp(_) | Self::Ends(_) | Self::ComesUp(_) | Self::RemoveStray(_) => false,
            Self::GiveUp | Self::RemoveGivenUp | Self::Forget => false,
            Self::ByHand(_, ByHand::LetGo | ByHand::Unmark) => false,
            _ => true,
        }
    }
}

pub fn is_registration(txn: &Txn) -> bool {
    matches!(txn.ops.as_slice(), [Op::PutAgent(..)])
}

impl World {
    pub fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::with_capacity(16);
        if self.is_over() {
            return moves;
        }
        if self.is_electing() {
            moves.extend(self.ups().map(Move::Elect));
            return moves;
        }
        moves.extend((0..self.lapsing().len()).map(|lease| Move::Lapse(lease as At)));
        (0..self.hosts.len()).for_each(|host| self.moves_of(host, &mut moves));
        if self.has_quorum() {
            moves.extend((0..self.late.len()).map(|late| Move::Land(late as At)));
            moves.extend((0..self.calls.len()).map(|call| Move::Arrive(call as At)));
        }
        self.repairs(&mut moves);
        self.faults(&mut moves);
        moves
    }

    fn ups(&self) -> impl Iterator<Item = At> {
        let is_up = |at: &usize| !self.listed[*at].is_learner && self.is_up(&self.listed[*at]);
        (0..self.listed.len()).filter(is_up).map(|at| at as At)
    }

    fn moves_of(&self, host: usize, moves: &mut Vec<Move>) {
        let (at, on, left) = (host as At, &self.hosts[host], &self.left);
        if on.is_dead {
            return;
        }
        let owner = on.data.and_then(|id| self.member(id));
        if on.runs && !on.is_caught_up && owner.is_some() && self.has_quorum() {
            moves.push(Move::CatchesUp(at));
        }
        if on.runs && owner.is_none() && on.data.is_some() {
            moves.push(Move::Ends(at));
        }
        if !on.runs && owner.is_some() && !self.scenario.agents.contains(&host) {
            moves.push(Move::ComesUp(at));
        }
        match &on.process {
            None if self.scenario.agents.contains(&host) => {
                moves.push(Move::Start(at, Verb::Run));
                if self.is_foreign() {
                    moves.push(Move::Start(at, Verb::Resume));
                }
            }
            None => {}
            Some(process) => {
                moves.extend(self.outcomes(process).into_iter().map(|outcome| Move::Act(at, outcome)));
                let has = |left: u8, what| (left > 0).then_some(what);
                moves.extend(has(left.kill, Move::Kill(at)));
                moves.extend(has(left.freeze, Move::Freeze(at)).filter(|_| process.is_registered));
                moves.extend(has(left.lapse, Move::LoseKey(at)).filter(|_| self.has_key(host)));
            }
        }
    }

    fn has_key(&self, host: usize) -> bool {
        self.keys.agents.contains_key(&self.id_of_host(host))
    }

    /// Whether the list is not as the run has it: then a person may take it as it is.
    fn is_foreign(&self) -> bool {
        let Some(membership) = self.run().and_then(|run| run.value.membership.as_ref()) else { return false };
        let is_known = |one: &Listed| membership.is_expected(one.id) || self.is_joining(one.id) || !one.is_named;
        let is_left = |id: MemberId| {
            let is_of_step = self.keys.step.as_ref().is_some_and(|step| step.value.member == id);
            self.is_listed(id) || is_of_step
        };
        !self.listed.iter().all(is_known) || !membership.expected.iter().all(|one| is_left(one.member))
    }

    fn run(&self) -> Option<&Stamped<Run>> {
        self.keys.run.as_ref().filter(|run| !run.value.is_over())
    }

    fn joins(&self) -> &[Join] {
        self.run().and_then(|run| run.value.membership.as_ref()).map_or(&[], |membership| &membership.joins)
    }

    fn is_joining(&self, id: MemberId) -> bool {
        self.joins().iter().any(|join| join.member == Some(id))
    }

    /// The newcomer whose host is gone for good, or any.
    fn abandoned(&self, is_any: bool) -> Option<&Join> {
        let is_dead = |join: &&Join| {
            (0..self.hosts.len()).any(|host| self.id_of_host(host) == join.host && self.hosts[host].is_dead)
        };
        self.joins().iter().find(|join| is_any || is_dead(join)).filter(|_| self.keys.step.is_none())
    }

    /// What persons do where only they can go on, and nothing else is left to do.
    fn repairs(&self, moves: &mut Vec<Move>) {
        let is_quiet = self.hosts.iter().all(|host| host.process.is_none()) && self.has_quorum();
        if !is_quiet {
            return;
        }
        let is_stray = |one: &Listed| {
            let is_of_join = self.joins().iter().any(|join| join.peer_urls == [url_of(one.seat)]);
            one.is_learner && !is_of_join
        };
        let strays = (0..self.listed.len()).filter(|at| is_stray(&self.listed[*at]));
        moves.extend(strays.map(|at| Move::RemoveStray(at as At)));
        match self.abandoned(false) {
            None => {}
            Some(Join { stage: Stage::GivenUp { .. }, member, .. }) => match member.filter(|id| self.is_listed(*id)) {
                Some(_) => moves.push(Move::RemoveGivenUp),
                None => moves.push(Move::Forget),
            },
            Some(_) => moves.push(Move::GiveUp),
        }
    }

    fn faults(&self, moves: &mut Vec<Move>) {
        let left = &self.left;
        let hosts = |moves: &mut Vec<Move>, left: u8, may: &dyn Fn(usize) -> bool, what: fn(At) -> Move| {
            moves.extend((0..self.hosts.len()).filter(|host| left > 0 && may(*host)).map(|host| what(host as At)));
        };
        let is_frail = |host: usize| self.scenario.frail.contains(&host) && !self.hosts[host].is_dead;
        hosts(moves, left.crash, &|host| self.hosts[host].runs, Move::Crash);
        hosts(moves, left.vanish, &|host| is_frail(host) && self.hosts[host].data.is_some(), Move::Vanish);
        hosts(moves, left.die, &is_frail, Move::Die);
        let listed = |moves: &mut Vec<Move>, left: u8, may: &dyn Fn(&Listed) -> bool, what: fn(At) -> Move| {
            let found = (0..self.listed.len()).filter(|at| left > 0 && may(&self.listed[*at]));
            moves.extend(found.map(|at| what(at as At)));
        };
        listed(moves, left.move_leader, &|one| self.is_up(one) && !one.is_learner && one.id != self.leader, |at| {
            Move::LeaderMoves(at)
        });
        if !self.has_quorum() {
            return;
        }
        let is_quiet = self.hosts.iter().all(|host| host.process.is_none());
        moves.extend(self.by_hand(is_quiet).into_iter().map(|(host, what)| Move::ByHand(host, what)));
        // Before a run it is another cluster, for which the playbook may ask what cannot be had.
        listed(moves, left.remove, &|one| self.run().is_some() && self.may_go(one), Move::PersonRemoves);
        listed(moves, left.promote, &|one| one.is_learner && one.is_synced, Move::PersonPromotes);
        moves.extend((left.add > 0).then_some(Move::PersonAdds));
        moves.extend((left.lapse > 0 && self.keys.baton.is_some()).then_some(Move::LoseBaton));
        let is_new = |join: &&Join| !matches!(join.stage, Stage::GivenUp { .. });
        let may_abandon = left.abandon > 0 && self.abandoned(true).filter(is_new).is_some();
        moves.extend(may_abandon.then_some(Move::Abandon));
    }

    pub fn outcomes(&self, process: &Process) -> Vec<Outcome> {
        use Outcome::*;
        let left = &self.left;
        let mut outcomes = vec![Plain];
        let mut or = |left: u8, others: &[Outcome]| outcomes.extend(others.iter().filter(|_| left > 0));
        match &process.act {
            Act::Look if left.split_looks && process.read.is_none() => return vec![Read],
            Act::Look => or(1, &[Gathered]),
            Act::Send(_) if !self.has_quorum() => return vec![OutOfTime],
            Act::Send(txn) if is_registration(txn) => {}
            Act::Send(_) => or(left.unknown, &[UnknownNo, UnknownYes, UnknownLate]),
            Act::AddMember(_) | Act::ChangeRole(_) => {
                or(left.call, &[UnknownNo, UnknownYes, UnknownLate]);
                or(left.refuse, &[Fails]);
            }
            Act::Wait(wait) => {
                or(left.give_up, &[Expired]);
                let is_dead = self.hosts.iter().any(|host| host.is_dead);
                let is_hopeless = is_dead || self.is_beyond_reach() || self.scenario.faults.has_persons();
                or(u8::from(is_hopeless && !matches!(wait, Wait::CatchUp { .. })), &[OutOfTime]);
            }
            Act::StartNew(..) => or(left.sick, &[Fails, FailsDone]),
            Act::Archive(_) | Act::Retire(_) => or(left.stuck, &[Fails]),
            _ => {}
        }
        outcomes
    }

    pub fn make(&self, what: Move) -> Result<World, Violation> {
        let mut world = self.clone();
        world.charge(what);
        match what {
            Move::Act(host, outcome) => world.act(host.into(), outcome)?,
            Move::Start(host, verb) => world.start(host.into(), verb)?,
            Move::Land(late) => {
                let Late { txn, by } = world.late.remove(late.into());
                world.commit(&txn, by).ok();
            }
            Move::Arrive(call) => {
                let call = world.calls.remove(call.into());
                world.arrive(call)?;
            }
            Move::Elect(at) | Move::LeaderMoves(at) => world.leader = world.listed[usize::from(at)].id,
            Move::Lapse(lease) => world.lapse(world.lapsing()[usize::from(lease)]),
            Move::CatchesUp(host) => {
                let at = world.host(host.into());
                at.is_caught_up = true;
                if let Some(id) = at.data {
                    world.with(id, |one| (one.is_named, one.is_synced) = (true, true));
                }
            }
            Move::Ends(host) | Move::Crash(host) => world.host(host.into()).runs = false,
            Move::ComesUp(host) => world.run_process(host.into()),
            Move::RemoveStray(at) | Move::PersonRemoves(at) => drop(world.listed.remove(at.into())),
            Move::PersonAdds => drop(world.arrive(Call::Add(NOBODYS))?),
            Move::PersonPromotes(at) => world.listed[usize::from(at)].is_learner = false,
            Move::GiveUp | Move::Abandon => world.give_up(),
            Move::RemoveGivenUp => world.remove_given_up(),
            Move::Forget => world.forget(),
            Move::Kill(host) => world.host(host.into()).process = None,
            Move::Freeze(host) => world.end_leases_of(world.process(host.into()).id),
            Move::LoseKey(host) => {
                let id = world.id_of_host(host.into());
                drop(Rc::make_mut(&mut world.keys).agents.remove(&id));
            }
            Move::LoseBaton => {
                let take = world.keys.baton.as_ref().map(|baton| baton.value.take);
                world.end_lease(|baton| Some(baton.take) == take);
            }
            Move::ByHand(host, what) => world.do_by_hand(host.into(), what),
            Move::Vanish(host) => {
                let at = world.host(host.into());
                (at.data, at.runs) = (None, false);
            }
            Move::Die(host) => {
                let at = world.host(host.into());
                (at.is_dead, at.data, at.runs, at.process) = (true, None, false, None);
            }
        }
        world.judge_state(self)?;
        Ok(world)
    }

    fn charge(&mut self, what: Move) {
        use Outcome::*;
        let act = match what {
            Move::Act(host, _) => self.hosts[usize::from(host)].process.as_ref().map(|process| process.act.clone()),
            _ => None,
        };
        let is_call = matches!(act, Some(Act::AddMember(_) | Act::ChangeRole(_)));
        let left = &mut self.left;
        let spent = match what {
            Move::Act(_, UnknownNo | UnknownYes | UnknownLate) if is_call => &mut left.call,
            Move::Act(_, UnknownNo | UnknownYes | UnknownLate) => &mut left.unknown,
            Move::Act(_, Fails) if is_call => &mut left.refuse,
            Move::Act(_, Fails | FailsDone) if matches!(act, Some(Act::StartNew(..))) => &mut left.sick,
            Move::Act(_, Fails) => &mut left.stuck,
            Move::Act(_, Expired) => &mut left.give_up,
            Move::Kill(_) => &mut left.kill,
            Move::Freeze(_) => &mut left.freeze,
            Move::LoseKey(_) | Move::LoseBaton => &mut left.lapse,
            Move::Crash(_) => &mut left.crash,
            Move::Vanish(_) => &mut left.vanish,
            Move::Die(_) => &mut left.die,
            Move::LeaderMoves(_) => &mut left.move_leader,
            Move::PersonRemoves(_) => &mut left.remove,
            Move::PersonAdds => &mut left.add,
            Move::PersonPromotes(_) => &mut left.promote,
            Move::Abandon => &mut left.abandon,
            Move::ByHand(_, ByHand::Mark) => &mut left.mark,
            Move::ByHand(_, ByHand::Hold) => &mut left.hold,
            Move::ByHand(_, ByHand::Unhold) => &mut left.unhold,
            _ => return,
        };
        *spent = spent.saturating_sub(1);
    }

    // ---- `agent abandon SEAT` ----

    fn give_up(&mut self) {
        let (Some(run), Some(join)) =
            (self.run().cloned(), self.abandoned(self.left.abandon < self.scenario.faults.abandon))
        else {
            return;
        };
        let join = Join { stage: Stage::GivenUp { why: "".into() }, ..join.clone() };
        let membership = run.value.membership.as_deref().cloned().unwrap_or_default().with_join(join);
        self.commit(&Txn::note_members(&run, membership, &self.scenario.rules), super::world::By).ok();
    }

    fn remove_given_up(&mut self) {
        let id = self.abandoned(false).and_then(|join| join.member);
        self.listed.retain(|one| Some(one.id) != id);
    }

    fn forget(&mut self) {
        let (Some(run), Some(join)) = (self.run().cloned(), self.abandoned(false)) else { return };
        let membership = run.value.membership.as_deref().cloned().unwrap_or_default().without_join(&join.seat);
        self.commit(&Txn::note_members(&run, membership, &self.scenario.rules), super::world::By).ok();
    }
}

//! What can happen next in a world.

use super::{
    judge::marked_in,
    names::node_of,
    way::{Place, place},
    world::{Process, World},
};
use agent::{
    journal::restart::Binary,
    keys::{
        Going, RunState,
        txn::{Op, Txn},
    },
    machine::act::Act,
    plan::Verb,
};

/// A host or a node, by its number.
pub type At = u8;

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// An agent's act is done and answered.
    Act(At, Outcome),
    /// An agent is started with what the run's state asks for.
    Start(At, Verb),
    /// The same on another hop than is due, for want of an answer.
    StartAt(At, Verb, Place),
    /// A Txn that was under way is done or refused.
    Land(At),
    /// A quorum without a leader elects one.
    Elect(At),
    /// The leader raises the cluster version.
    Rise,
    /// The leader lowers the cluster version, as a downgrade is enabled.
    Lower,
    /// A member has made its data fit for the lower release.
    Fit(At),
    /// The leader ends a downgrade that every member has followed.
    EndLowering,
    /// A call that was under way enables a downgrade.
    LandCall,
    /// Of the leases that nobody keeps alive this one runs out.
    Lapse(At),
    /// A process that was told to stop ends.
    End(At),
    /// A sick process becomes healthy: an operator repaired it, or it was only slow.
    Recover(At),
    Kill(At),
    /// An agent is killed once it has told its member to stop.
    KillInStop(At),
    LoseDirectory(At),
    Crash(At),
    Freeze(At),
    LeaderMoves(At),
    Interrupt(At),
    /// `agent abandon` of the record that stands.
    Abandon,
    /// `agent run --replace` of the run that stands.
    Replace,
    /// `agent pause` of the run that stands.
    Pause,
    /// `agent resume`, which lifts that before it does anything else.
    Unpause,
    /// An agent is started with what nothing asks for.
    Type(At, Verb),
    /// A guarded command ends, and leaves nothing to come.
    CommandEnds(At),
    /// It ends, and its host is about to restart.
    CommandEndsLate(At),
    /// It stops its host's members, which their supervisor may start again.
    CommandStops(At),
    /// A host restarts by a guarded command.
    HostGoes(At),
    PowerLost(At),
    /// A member is started by its supervisor.
    ComesUp(At),
}

/// How an act ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Plain,
    /// The first half of a look: the keys are read.
    KeysRead,
    /// A look made after the time in which other agents come.
    Gathered,
    /// Leadership passes to this node, as good as the one that was asked for.
    Passes(At),
    /// Not answered, and not done.
    UnknownNo,
    /// Not answered, though done.
    UnknownYes,
    /// Not answered, and not done yet.
    UnknownLate,
    /// Not answered nor done, and not asked again.
    GaveUp,
    /// Not answered nor asked again, and not done yet.
    GaveUpLate,
    /// Nobody made progress for too long.
    Expired,
    /// A process that comes up but does not work.
    Sick,
    /// A process that ends as soon as it was started.
    Dies,
    /// Healthy, but not in time.
    Slow,
    /// What is given up in the end as nobody answers: no quorum stands.
    OutOfTime,
    Fails,
    /// Said to have failed, though done.
    FailsDone,
    /// A guarded command is not let begin.
    NotLet,
}

impl Move {
    /// Whether this is a fault, or an operator's own decision: what liveness must do without.
    pub fn is_fault(self) -> bool {
        use Outcome::{Gathered, KeysRead, OutOfTime, Passes, Plain};
        match self {
            Self::Act(_, outcome) => !matches!(outcome, Plain | KeysRead | Gathered | Passes(_) | OutOfTime),
            Self::Start(..) | Self::Land(_) | Self::Elect(_) | Self::Rise | Self::Lapse(_) => false,
            Self::Recover(_) | Self::End(_) | Self::Unpause => false,
            Self::Lower | Self::Fit(_) | Self::EndLowering | Self::LandCall => false,
            Self::CommandEnds(_) | Self::HostGoes(_) => false,
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
            moves.extend(self.ups().map(|node| Move::Elect(node as At)));
            return moves;
        }
        if let Some(host) = self.first_private() {
            self.outcomes_and_ends(host, self.process(host), &mut moves);
            return moves;
        }
        moves.extend((0..self.lapsing().len()).map(|lease| Move::Lapse(lease as At)));
        (0..self.hosts.len()).for_each(|host| self.moves_of(host, &mut moves));
        if self.has_quorum() {
            moves.extend((0..self.late.len()).map(|late| Move::Land(late as At)));
        }
        if self.may_rise() && self.has_quorum() {
            moves.push(Move::Rise);
        }
        self.moves_of_downgrade(&mut moves);
        let is_sick = |node: &usize| self.nodes[*node].is_sick;
        moves.extend((0..self.nodes.len()).filter(is_sick).map(|node| Move::Recover(node as At)));
        let is_told = |node: &usize| self.nodes[*node].is_told;
        moves.extend((0..self.nodes.len()).filter(is_told).map(|node| Move::End(node as At)));
        self.moves_of_errands(&mut moves);
        self.faults_of_all(&mut moves);
        moves
    }

    fn ups(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].is_up())
    }

    fn moves_of(&self, host: usize, moves: &mut Vec<Move>) {
        let (left, at) = (&self.left, host as At);
        let Some(process) = &self.hosts[host].process else { return self.starts(at, moves) };
        self.outcomes_and_ends(host, process, moves);
        if matches!(process.act, Act::Exit(_)) {
            return;
        }
        if left.interrupt > 0 {
            moves.push(Move::Interrupt(at));
        }
        if left.freeze > 0 && process.is_registered {
            moves.push(Move::Freeze(at));
        }
    }

    fn outcomes_and_ends(&self, host: usize, process: &Process, moves: &mut Vec<Move>) {
        let at = host as At;
        moves.extend(self.outcomes(host, process).into_iter().map(|outcome| Move::Act(at, outcome)));
        // One that has only to end does, whatever befalls it.
        if matches!(process.act, Act::Exit(_)) {
            return;
        }
        if self.left.kill > 0 {
            moves.push(Move::Kill(at));
            // Twins are explored without.
            if matches!(process.act, Act::Stop(_)) && !self.scenario.has_twins {
                moves.push(Move::KillInStop(at));
            }
        }
        if self.left.lose_directory > 0 {
            moves.push(Move::LoseDirectory(at));
        }
    }

    /// What a person types, given what the last run said.
    fn starts(&self, at: At, moves: &mut Vec<Move>) {
        self.guards(at, moves);
        if !self.scenario.has_run {
            return;
        }
        let state = self.keys.run.as_ref().map(|run| &run.value.state);
        let verb = match state {
            Some(RunState::RollingBack | RunState::Failed { was: Going::RollingBack, .. }) => Verb::Rollback,
            Some(RunState::Held { .. }) => Verb::Finalize,
            _ => Verb::Run,
        };
        moves.push(Move::Start(at, verb));
        let mistaken = self.hops_mistaken(at.into());
        moves.extend(mistaken.into_iter().map(|hop| Move::StartAt(at, verb, hop)));
        if verb == Verb::Finalize {
            moves.push(Move::Start(at, Verb::Run));
        }
        if self.left.rollback > 0 && state.is_some() {
            moves.push(Move::Type(at, Verb::Rollback));
        }
        if self.left.resume > 0 && marked_in(state) {
            moves.push(Move::Type(at, Verb::Resume));
        }
    }

    fn faults_of_all(&self, moves: &mut Vec<Move>) {
        let left = &self.left;
        let stands = self.keys.run.as_ref().map(|run| &run.value).filter(|run| !run.is_over() && self.has_quorum());
        match stands.map(|run| run.pause.is_some()) {
            Some(true) => moves.push(Move::Unpause),
            Some(false) if left.pause > 0 => moves.push(Move::Pause),
            _ => {}
        }
        if left.crash > 0 {
            let lives = |node: &usize| self.nodes[*node].process.is_some();
            moves.extend((0..self.nodes.len()).filter(lives).map(|node| Move::Crash(node as At)));
        }
        if left.move_leader > 0 {
            moves.extend(self.ups().filter(|node| *node != self.leader).map(|node| Move::LeaderMoves(node as At)));
        }
        if left.abandon > 0 && self.keys.step.is_some() && self.has_quorum() {
            moves.push(Move::Abandon);
        }
        let is_going = self.keys.run.as_ref().is_some_and(|run| run.value.going().is_some());
        if left.replace > 0 && is_going && self.has_quorum() {
            moves.push(Move::Replace);
        }
    }

    pub fn outcomes(&self, host: usize, process: &Process) -> Vec<Outcome> {
        use Outcome::*;
        let left = &self.left;
        let mut outcomes = vec![Plain];
        let mut or = |left: u8, faults: &[Outcome]| outcomes.extend(faults.iter().filter(|_| left > 0));
        match &process.act {
            Act::Look if self.left.split_looks && process.read.is_none() => return vec![KeysRead],
            Act::Look => or(1, &[Gathered]),
            Act::GiveBack(_) => {
                or(left.unknown, &[UnknownNo, UnknownYes]);
                or(left.give_up, &[GaveUp]);
            }
            // One that ends while its agent waits for an answer is started by the next agent.
            Act::Send(_) if !self.has_quorum() && self.is_cut_off(host) => return vec![UnknownNo, OutOfTime],
            Act::Send(_) if !self.has_quorum() => return vec![UnknownNo],
            // Its key stands and falls with its agent's own lease, and no answer to it decides anything.
            Act::Send(txn) if is_registration(txn) => {}
            Act::Send(_) => {
                or(left.unknown, &[UnknownNo, UnknownYes, UnknownLate]);
                or(left.give_up, &[GaveUp, GaveUpLate]);
            }
            Act::Downgrade(_) => {
                or(left.unknown, &[UnknownYes, UnknownLate]);
                or(left.give_up, &[GaveUp, GaveUpLate]);
            }
            Act::Wait(_) if !self.has_quorum() && self.is_cut_off(host) => or(1, &[OutOfTime]),
            Act::Wait(_) => or(left.give_up, &[Expired]),
            Act::Start(member) if self.nodes[node_of(*member)].process.is_none() => or(left.sick, &[Sick, Dies]),
            Act::AwaitReady { member, on } if self.is_healed(host, node_of(*member), *on) => or(left.sick, &[Slow]),
            Act::AwaitSettled { back } => match self.is_settled(process.hop, *back) {
                true => or(left.refuse, &[Fails]),
                false if self.settles(process.hop, *back) => return vec![],
                false => {}
            },
            Act::Prepare | Act::HookBefore(_) | Act::BackUp => or(left.refuse, &[Fails]),
            Act::HandOver { to, .. } => {
                or(left.refuse, &[Fails]);
                outcomes.extend(self.as_good_as(node_of(*to), host).map(|node| Passes(node as At)));
            }
            Act::Spawn | Act::Command | Act::AwaitHost(_) => return self.outcomes_of_guard(host, &process.act),
            Act::Stop(_) => or(left.stuck, &[Fails]),
            Act::Switch { .. } => or(left.stuck, &[Fails, FailsDone]),
            _ => {}
        }
        outcomes
    }

    /// Whether an answer may be missing because of a member that the next agent would start.
    fn is_cut_off(&self, host: usize) -> bool {
        let has_own_down = || self.scenario.faults.guard > 0 && !self.down_on(host).is_empty();
        self.nodes.iter().any(|node| node.has_followed) || has_own_down()
    }

    /// Whether its host remembers that it was told to stop.
    pub fn is_on_its_way_down(&self, node: usize) -> bool {
        self.nodes[node].is_told && !self.scenario.forgets_what_was_told
    }

    /// Whether a member is ready on this binary.
    pub fn is_healed(&self, host: usize, node: usize, on: Option<Binary>) -> bool {
        !self.is_on_its_way_down(node)
            && self.is_ready(node)
            && on.is_none_or(|on| self.nodes[node].process == Some(self.place_on(host, on)))
    }

    pub fn is_settled(&self, hop: Place, back: bool) -> bool {
        let has_version = self.scenario.version(target(hop, back)) == self.version;
        self.settles(hop, back) && !self.is_going_down && has_version
    }

    /// Whether the cluster comes there by itself.
    fn settles(&self, hop: Place, back: bool) -> bool {
        self.all_run(target(hop, back)) && !(back && self.is_going_down)
    }

    /// Whom else the machine could have named: it takes the first of its kind, and the model has no first.
    fn as_good_as(&self, to: usize, host: usize) -> impl Iterator<Item = usize> {
        let alike = move |node: &usize| {
            *node != to && self.scenario.owners[*node] != host && self.nodes[*node].process == self.nodes[to].process
        };
        self.ups().filter(alike).filter(|node| *node != self.leader)
    }
}

/// Where a hop leads.
fn target(hop: Place, back: bool) -> Place {
    place(hop, if back { Binary::Old } else { Binary::New })
}

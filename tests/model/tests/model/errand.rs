//! Guarded commands: what one does to its host, when the host comes back, and what must hold meanwhile.
//!
//! A command ends, stops its host's members, or takes the whole host: while it runs, or some time after its end. With its host
//! go the agent and the members; the next boot has another first process, and remembers nothing but what was written. The
//! members' supervisor may start them again, but no end relies on that.

use super::{
    judge::{LEADER, OTHER_SICK, TWO_DOWN, UNDER_MARK, Violation, check},
    moves::{At, Move, Outcome},
    names::{id_of, node_of, process_id},
    world::World,
};
use agent::{
    journal::guarded::{Command, Stage},
    keys::{AttemptId, Keys},
    machine::act::{Act, Event},
    plan::{Guard, Verb},
};

pub const GONE_WITHOUT_LOCK: Violation = "a guarded command may take its host, and no lock says so";
pub const BELOW: Violation = "a guarded command would leave fewer than a majority";

/// What a guarded command does to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Errand {
    /// None runs, and none has left anything to come.
    Idle,
    Runs,
    /// It has ended, and the host is about to restart.
    Queued,
}

impl World {
    fn attempt_in_hand(&self, host: usize) -> Option<AttemptId> {
        Some(self.hosts[host].journal?.guarded()?.step.attempt)
    }

    /// The command that the journal says may have begun.
    fn noted(&self, host: usize) -> Option<Command> {
        match self.hosts[host].journal?.guarded()?.stage {
            Stage::Runs(command) => Some(command),
            Stage::Planned => None,
        }
    }

    /// Whether the host may restart by what a command did. One of which it was said that it restarts the host does in the
    /// end, if by a person's hand.
    fn may_go(&self, host: usize) -> bool {
        let at = &self.hosts[host];
        at.errand != Errand::Idle || self.noted(host).is_some_and(|noted| noted.reboots && noted.init == at.init)
    }

    fn may_lose_power(&self, host: usize) -> bool {
        self.left.power > 0 && self.attempt_in_hand(host).is_some()
    }

    /// Whether everything on this host may be gone at the next moment.
    pub fn is_at_risk(&self, host: usize) -> bool {
        self.may_go(host) || self.may_lose_power(host)
    }

    /// Whether no guard has left anything behind.
    pub fn is_guarding_over(&self) -> bool {
        (0..self.hosts.len()).all(|host| !self.may_go(host) && self.attempt_in_hand(host).is_none())
    }

    // ---- moves ----

    pub fn moves_of_errands(&self, moves: &mut Vec<Move>) {
        for host in 0..self.hosts.len() {
            let at = host as At;
            let runs = |node: &usize| self.nodes[*node].process.is_some();
            if self.hosts[host].errand == Errand::Runs {
                moves.extend([Move::CommandEnds(at), Move::CommandEndsLate(at)]);
                moves.extend(self.scenario.owned_by(host).any(|node| runs(&node)).then_some(Move::CommandStops(at)));
            }
            moves.extend(self.may_go(host).then_some(Move::HostGoes(at)));
            moves.extend(self.may_lose_power(host).then_some(Move::PowerLost(at)));
        }
        let is_awaited = |node: &usize| self.nodes[*node].is_supervised;
        moves.extend((0..self.nodes.len()).filter(is_awaited).map(|node| Move::ComesUp(node as At)));
    }

    /// What is typed on a host where no agent runs.
    pub fn guards(&self, at: At, moves: &mut Vec<Move>) {
        let host = usize::from(at);
        let id = self.id_of_host(host);
        let mut records = self.keys.step.iter().chain(self.keys.abandoned.values());
        let has_left = self.hosts[host].journal.is_some_and(|in_hand| in_hand.guarded().is_some())
            || records.any(|record| record.value.host == id)
            || self.keys.baton.as_ref().is_some_and(|baton| baton.value.host == id);
        // Without a run it is the only way to repair.
        if has_left || (!self.scenario.has_run && !self.down_on(host).is_empty()) {
            moves.push(Move::Start(at, Verb::Guard(Guard::Finish)));
        }
        let command = Verb::Guard(Guard::Command);
        match self.scenario.has_run {
            _ if self.left.guard == 0 => {}
            true => moves.push(Move::Type(at, command)),
            false => moves.push(Move::Start(at, command)),
        }
        if self.left.ask > 0 {
            moves.push(Move::Type(at, Verb::Guard(Guard::Check)));
        }
    }

    pub fn command_ends(&mut self, host: usize, errand: Errand) {
        self.host(host).errand = errand;
    }

    pub fn command_stops(&mut self, host: usize) -> Result<(), Violation> {
        self.judge_down(host)?;
        self.end_members(host, true);
        Ok(())
    }

    /// The host restarts as the command has it.
    pub fn host_goes(&mut self, host: usize) -> Result<(), Violation> {
        self.judge_down(host)?;
        self.reboot(host, true);
        Ok(())
    }

    pub fn reboot(&mut self, host: usize, by_our_hand: bool) {
        self.end_members(host, by_our_hand);
        let init = process_id(host, self.fresh());
        let at = self.host(host);
        (at.process, at.errand, at.init) = (None, Errand::Idle, init);
    }

    fn end_members(&mut self, host: usize, by_our_hand: bool) {
        let own: Vec<usize> = self.scenario.owned_by(host).collect();
        for node in own {
            let node = &mut self.nodes[node];
            if node.process.is_some() {
                node.end();
                node.by_our_hand |= by_our_hand;
            }
            node.is_supervised = true;
        }
    }

    pub fn comes_up(&mut self, node: usize) -> Result<(), Violation> {
        self.judge_start(node)?;
        let node = &mut self.nodes[node];
        (node.process, node.by_our_hand, node.is_supervised) = (Some(node.binary), false, false);
        Ok(())
    }

    // ---- acts ----

    pub fn outcomes_of_guard(&self, host: usize, act: &Act) -> Vec<Outcome> {
        let at = &self.hosts[host];
        let may_fail = (self.left.refuse > 0).then_some(Outcome::Fails);
        let plain_or = |other: Option<Outcome>| [Outcome::Plain].into_iter().chain(other).collect();
        match act {
            Act::Command if !self.process(host).has_let => plain_or((self.left.refuse > 0).then_some(Outcome::NotLet)),
            Act::Command if at.errand == Errand::Runs => vec![],
            Act::AwaitHost(command) => {
                let is_back = at.init != command.init;
                let stays = at.errand == Errand::Idle && !command.reboots;
                if is_back || stays { vec![Outcome::Plain] } else { vec![] }
            }
            _ => plain_or(may_fail),
        }
    }

    pub fn spawn(&mut self, host: usize) -> Event {
        let process = process_id(host, self.fresh());
        self.process_mut(host).has_let = false;
        Event::Spawned(Command { process, init: self.hosts[host].init, reboots: self.scenario.says_reboots })
    }

    /// Its command begins; it is answered when that has ended.
    pub fn begin_command(&mut self, host: usize) -> Result<(), Violation> {
        let attempt = self.attempt_in_hand(host).ok_or("a command began without a journal")?;
        let in_hand = self.process(host).agent.in_hand();
        check(self.hosts[host].journal == in_hand, "a command began before the journal said so")?;
        check(self.hosts[host].begun != Some(attempt), "a command began twice")?;
        let is_own = |marked| self.scenario.owned_by(host).any(|node| node == node_of(marked));
        check(self.marked.is_none_or(is_own), UNDER_MARK)?;
        self.process_mut(host).has_let = true;
        let at = self.host(host);
        (at.begun, at.errand) = (Some(attempt), Errand::Runs);
        Ok(())
    }

    /// What an attempt began is of no more interest once that is forgotten.
    pub fn forget_begun(&mut self, host: usize) {
        if self.attempt_in_hand(host).is_none() && self.hosts[host].errand == Errand::Idle {
            self.host(host).begun = None;
        }
    }

    // ---- what must hold ----

    /// While anything may yet come of a command, its lock stands, or the sign that it was given up.
    pub fn judge_errands(&self) -> Result<(), Violation> {
        let stands = |attempt| {
            let mut records = self.keys.step.iter().chain(self.keys.abandoned.values());
            records.any(|record| Some(record.value.attempt) == attempt)
        };
        let mut abroad = self.hosts.iter().filter(|at| at.errand != Errand::Idle);
        check(abroad.all(|at| stands(at.begun)), GONE_WITHOUT_LOCK)
    }

    fn judge_down(&self, host: usize) -> Result<(), Violation> {
        let mut others = (0..self.nodes.len()).filter(|node| self.scenario.owners[*node] != host);
        check(!others.any(|node| self.nodes[node].by_our_hand), TWO_DOWN)
    }

    /// A command that this look lets begin.
    pub fn judge_guard(&self, host: usize, keys: Option<&Keys>) -> Result<(), Violation> {
        let process = self.process(host);
        let (Act::Confirm(_), Some(in_hand)) = (&process.act, process.agent.in_hand().and_then(|it| it.guarded()))
        else {
            return Ok(());
        };
        let seen = self.view();
        let (own, others): (Vec<_>, Vec<_>) =
            seen.voters().partition(|voter| self.scenario.owned_by(host).any(|node| id_of(node) == voter.id));
        let standing = others.iter().filter(|other| other.is_ready()).count();
        check(standing == others.len() || !own.iter().any(|own| own.is_ready()), OTHER_SICK)?;
        check(standing > self.nodes.len() / 2 || self.nodes.len() < 3, BELOW)?;
        check(standing == 0 || !own.iter().any(|own| seen.is_leader(own.id)), LEADER)?;
        let lock = keys.and_then(|keys| keys.step.as_ref()).map(|lock| lock.value.attempt);
        check(lock == Some(in_hand.step.attempt), GONE_WITHOUT_LOCK)
    }

    pub fn is_guard(&self, host: usize) -> bool {
        matches!(self.process(host).verb, Verb::Guard(_))
    }

    /// Without this host's members there is no majority.
    pub fn judge_below(&self, host: usize) -> Result<(), Violation> {
        let others = (0..self.nodes.len()).filter(|node| self.scenario.owners[*node] != host);
        let standing = others.filter(|node| self.is_ready(*node)).count();
        check(standing <= self.nodes.len() / 2, "refused for quorum that there is")
    }

    /// A guarded command was said to be over, by whoever was asked for one.
    pub fn judge_guarded(&self, host: usize) -> Result<(), Violation> {
        let process = self.process(host);
        let is_over = self.hosts[host].errand == Errand::Idle && self.attempt_in_hand(host).is_none();
        check(is_over, "said a guarded command was over that was not")?;
        check(
            process.has_let || process.verb != Verb::Guard(Guard::Command),
            "said its command ran, which did not begin",
        )
    }

    /// Whoever only asks changes nothing.
    pub fn judge_asking(&self, host: usize) -> Result<(), Violation> {
        let process = self.process(host);
        let is_question = matches!(process.act, Act::Prepare | Act::Look | Act::Examine | Act::Wait(_) | Act::Exit(_));
        check(is_question || process.verb != Verb::Guard(Guard::Check), "was only asked, and acted")
    }
}

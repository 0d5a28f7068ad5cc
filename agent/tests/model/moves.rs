//! What can happen next in a world, and what comes of it.

use std::sync::Arc;

use agent::{
    journal::progress::{self, Binary, Leg, Stage},
    plan::Verb,
    rollout::{
        act::{Act, Event, Looked},
        agent::Agent,
        host_id::HostId,
        keys::{AttemptId, Baton, Going, KeyName, Keys, Participant, ProcessId, RunId, RunState, TakeId},
        txn::{Op, Txn},
    },
};

use super::{
    scenario::Scenario,
    world::{Process, Saw, World, id_of, node_of},
};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// An agent's act is done and answered.
    Act(usize, Outcome),
    /// An agent is started, by the same command again or the one that the run's state asks for.
    Start(usize, Verb),
    /// A Txn that was not answered is done after all.
    Land(usize),
    /// The leader raises the cluster version.
    Rise,
    /// The leases of a dead agent run out.
    Lapse(usize),
    Kill(usize),
    LoseDirectory(usize),
    Crash(usize),
    Freeze(usize),
    MoveLeader(usize),
    Interrupt(usize),
    Abandon,
    /// `agent rollback`, where nothing asks for it.
    StartRollback(usize),
    Replace,
}

/// How an act ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Plain,
    /// The first half of a look: the keys are read.
    KeysRead,
    /// A look made after the time in which other agents come.
    Gathered,
    /// Not answered, and not done.
    UnknownNo,
    /// Not answered, though done.
    UnknownYes,
    /// Not answered, and not done yet.
    UnknownLate,
    /// A process that comes up but never works.
    Sick,
    /// Healthy, but not in time.
    Slow,
    Fails,
}

impl Outcome {
    fn is_fault(self) -> bool {
        !matches!(self, Self::Plain | Self::KeysRead | Self::Gathered)
    }
}

impl Move {
    /// Whether this is a fault, or an operator's own decision: what liveness must do without.
    pub fn is_fault(self) -> bool {
        match self {
            Self::Act(_, outcome) => outcome.is_fault(),
            Self::Start(..) | Self::Land(_) | Self::Rise | Self::Lapse(_) => false,
            _ => true,
        }
    }
}

fn turns_back(txn: &Txn) -> bool {
    matches!(txn.ops.as_slice(), [Op::PutRun(run)] if run.state == RunState::RollingBack)
}

fn is_marked(state: &RunState) -> bool {
    matches!(state, RunState::Failed { .. })
}

fn is_registration(txn: &Txn) -> bool {
    matches!(txn.ops.as_slice(), [Op::PutAgent(..)])
}

/// What must never happen, and did.
pub type Violation = &'static str;

impl World {
    pub fn moves(&self, scenario: &Scenario) -> Vec<Move> {
        let mut moves = Vec::new();
        if self.is_over(scenario) {
            return moves;
        }
        if let Some(host) = (0..self.hosts.len()).find(|host| self.is_private(*host)) {
            // What only this host can see commutes with all that others do: one order stands for all.
            self.moves_of(host, &mut moves);
            return moves;
        }
        for host in 0..self.hosts.len() {
            self.moves_of(host, &mut moves);
        }
        moves.extend((0..self.late.len()).filter(|_| self.has_quorum()).map(Move::Land));
        if self.rise_pending && !self.risen && self.has_quorum() {
            moves.push(Move::Rise);
        }
        self.faults_of_all(&mut moves);
        moves
    }

    fn is_private(&self, host: usize) -> bool {
        let act = self.hosts[host].process.as_ref().map(|process| &process.act);
        if matches!(act, Some(Act::Send(txn)) if is_registration(txn)) {
            return true;
        }
        matches!(
            act,
            Some(Act::Journal(_) | Act::Prepare | Act::HookBefore(_) | Act::HookAfter(_) | Act::Switch { .. })
        )
    }

    fn moves_of(&self, host: usize, moves: &mut Vec<Move>) {
        let faults = &self.faults;
        if self.has_keys_of_dead(host) {
            moves.push(Move::Lapse(host));
        }
        let Some(process) = &self.hosts[host].process else {
            moves.push(Move::Start(host, self.verb()));
            if faults.rollback > 0 && self.keys.run.is_some() {
                moves.push(Move::StartRollback(host));
            }
            return;
        };
        moves.extend(self.outcomes(host, process).into_iter().map(|outcome| Move::Act(host, outcome)));
        let mut fault = |left: u8, fault: Move| {
            if left > 0 {
                moves.push(fault);
            }
        };
        fault(faults.kill, Move::Kill(host));
        fault(faults.lose_directory, Move::LoseDirectory(host));
        fault(faults.interrupt, Move::Interrupt(host));
        if !process.has_lapsed && process.is_registered {
            fault(faults.freeze, Move::Freeze(host));
        }
    }

    fn faults_of_all(&self, moves: &mut Vec<Move>) {
        let faults = &self.faults;
        if faults.crash > 0 {
            moves.extend((0..self.nodes.len()).filter(|node| self.nodes[*node].process.is_some()).map(Move::Crash));
        }
        if faults.move_leader > 0 {
            let others = (0..self.nodes.len()).filter(|node| *node != self.leader && self.nodes[*node].is_up());
            moves.extend(others.map(Move::MoveLeader));
        }
        let is_rolling = self.keys.run.as_ref().is_some_and(|run| run.value.going().is_some());
        if faults.abandon > 0 && self.keys.down.is_some() && self.has_quorum() {
            moves.push(Move::Abandon);
        }
        if faults.replace > 0 && is_rolling && self.has_quorum() {
            moves.push(Move::Replace);
        }
    }

    /// What a person types, given what the last run said.
    fn verb(&self) -> Verb {
        match self.keys.run.as_ref().map(|run| &run.value.state) {
            Some(RunState::RollingBack | RunState::Failed { was: Going::RollingBack, .. }) => Verb::Rollback,
            Some(RunState::Held { .. }) => Verb::Finalize,
            _ => Verb::Run,
        }
    }

    /// Whether leased keys stand of a process of this host that is gone.
    fn has_keys_of_dead(&self, host: usize) -> bool {
        let live = self.hosts[host].process.as_ref().map(|process| process.id);
        let is_dead_baton = |baton: &Baton| baton.process.boot_id == host as u128 && Some(baton.process) != live;
        let is_dead_agent =
            |id: HostId| id.machine == Some(host as u128 + 1) && (live.is_none() || id != self.host_id(host));
        self.keys.baton.as_ref().is_some_and(|baton| is_dead_baton(&baton.value))
            || self.keys.agents.keys().any(|id| is_dead_agent(*id))
    }

    fn outcomes(&self, host: usize, process: &Process) -> Vec<Outcome> {
        use Outcome::*;
        let faults = &self.faults;
        let or = |left: u8, fault: &[Outcome]| {
            let mut outcomes = vec![Plain];
            outcomes.extend(fault.iter().copied().filter(|_| left > 0));
            outcomes
        };
        match &process.act {
            Act::Look if self.faults.split_looks && process.read.is_none() => vec![KeysRead],
            Act::Look => vec![Plain, Gathered],
            Act::GiveBack(_) => or(faults.unknown, &[UnknownNo, UnknownYes]),
            Act::Send(txn) if is_registration(txn) => vec![Plain],
            Act::Send(_) if self.has_quorum() => or(faults.unknown, &[UnknownNo, UnknownYes, UnknownLate]),
            Act::Send(_) => vec![UnknownNo],
            Act::Start(_) => or(faults.sick, &[Sick]),
            Act::AwaitReady { member, on } => {
                let node = &self.nodes[node_of(*member)];
                let is_right = on.is_none_or(|on| node.process == Some(on));
                match self.is_ready(node_of(*member)) && is_right {
                    true => or(faults.sick, &[Slow]),
                    false => vec![Plain],
                }
            }
            Act::AwaitSettled { back } => {
                let wanted = if *back { Binary::Old } else { Binary::New };
                let settled = self.all_run(wanted) && self.risen != *back;
                if settled || !self.all_run(wanted) { vec![Plain] } else { vec![] }
            }
            Act::HookBefore(_) | Act::HandOver { .. } => or(faults.hook, &[Fails]),
            _ => {
                let _ = host;
                vec![Plain]
            }
        }
    }

    pub fn make(&self, scenario: &Scenario, what: Move) -> Result<World, Violation> {
        let mut world = self.clone();
        world.charge(what);
        match what {
            Move::Act(host, outcome) => world.act(host, outcome)?,
            Move::Start(host, verb) => world.start(scenario, host, verb),
            Move::StartRollback(host) => world.start(scenario, host, Verb::Rollback),
            Move::Land(at) => {
                let txn = world.late.remove(at);
                world.commit(&txn).ok();
            }
            Move::Rise => world.rise()?,
            Move::Lapse(host) => world.lapse(host, false),
            Move::Kill(host) => world.kill(host),
            Move::LoseDirectory(host) => {
                world.kill(host);
                world.hosts[host].journal = None;
                world.hosts[host].instance += 100;
            }
            Move::Crash(node) => world.nodes[node].process = None,
            Move::Freeze(host) => {
                world.lapse(host, true);
                if let Some(process) = &mut world.hosts[host].process {
                    process.has_lapsed = true;
                }
            }
            Move::MoveLeader(node) => world.leader = node,
            Move::Interrupt(host) => {
                if let Some(process) = &mut world.hosts[host].process {
                    process.agent.on(Event::Interrupted);
                }
            }
            Move::Abandon => {
                let txn = Txn::abandon(world.keys.down.as_ref().unwrap(), &scenario.rules);
                world.commit(&txn).ok();
            }
            Move::Replace => world.replace(),
        }
        world.settle();
        Ok(world.canonical())
    }

    fn charge(&mut self, what: Move) {
        let faults = &mut self.faults;
        let left = match what {
            // Without quorum no answer is no fault of its own.
            Move::Act(_, Outcome::UnknownNo | Outcome::UnknownYes | Outcome::UnknownLate) => &mut faults.unknown,
            Move::Act(_, Outcome::Sick | Outcome::Slow) => &mut faults.sick,
            Move::Act(_, Outcome::Fails) => &mut faults.hook,
            Move::Kill(_) => &mut faults.kill,
            Move::LoseDirectory(_) => &mut faults.lose_directory,
            Move::Crash(_) => &mut faults.crash,
            Move::Freeze(_) => &mut faults.freeze,
            Move::MoveLeader(_) => &mut faults.move_leader,
            Move::Interrupt(_) => &mut faults.interrupt,
            Move::Abandon => &mut faults.abandon,
            Move::StartRollback(_) => &mut faults.rollback,
            Move::Replace => &mut faults.replace,
            _ => return,
        };
        *left = left.saturating_sub(1);
    }

    // ---- processes ----

    fn start(&mut self, scenario: &Scenario, host: usize, verb: Verb) {
        let id = self.unused_process(host);
        let mut agent = Agent::new(scenario.me(self, host, verb), scenario.rules, id);
        if verb == Verb::Finalize {
            self.faults.approved = true;
        }
        let started = Event::Started { in_hand: self.hosts[host].journal, down: self.down_on(host) };
        let act = agent.on(started).unwrap();
        let (read, saw) = (None, Saw::default());
        self.hosts[host].process =
            Some(Process { id, agent, act, read, has_lapsed: false, saw, is_registered: false, verb });
    }

    fn down_on(&self, host: usize) -> Vec<proto::MemberId> {
        if self.nodes[host].process.is_none() { vec![id_of(host)] } else { vec![] }
    }

    /// The smallest pid that nothing remembers.
    fn unused_process(&self, host: usize) -> ProcessId {
        let records = self.keys.down.iter().chain(self.keys.lost.values()).map(|at| at.value.process);
        let batons = self.keys.baton.iter().map(|at| at.value.process);
        let late = self.late.iter().flat_map(|txn| &txn.ops).filter_map(|op| match op {
            Op::PutBaton(baton) => Some(baton.process),
            Op::PutDown(record) | Op::PutLost(record) => Some(record.process),
            _ => None,
        });
        let used: Vec<ProcessId> = records.chain(batons).chain(late).collect();
        (0..).map(|pid| ProcessId { boot_id: host as u128, pid, start_time: 0 }).find(|id| !used.contains(id)).unwrap()
    }

    fn kill(&mut self, host: usize) {
        self.hosts[host].process = None;
    }

    /// The leases of this host's dead processes run out; of its live one too, where that is frozen.
    fn lapse(&mut self, host: usize, is_frozen: bool) {
        let live = self.hosts[host].process.as_ref().map(|process| process.id).filter(|_| !is_frozen);
        let (machine, own) = (Some(host as u128 + 1), self.host_id(host));
        self.keys.agents.retain(|id, _| id.machine != machine || (live.is_some() && *id == own));
        self.forget_lease(|baton| baton.process.boot_id == host as u128 && Some(baton.process) != live);
    }

    fn rise(&mut self) -> Result<(), Violation> {
        self.risen = true;
        self.rise_pending = false;
        let stranded = |node: &super::world::Node| node.binary == Binary::Old || node.process == Some(Binary::Old);
        match self.nodes.iter().any(stranded) {
            true => Err("the version rose with an old binary in place"),
            false => Ok(()),
        }
    }

    // ---- operators ----

    fn replace(&mut self) {
        let Some(seen) = self.keys.run.clone() else { return };
        let mut run = seen.value.in_state(RunState::Rolling);
        run.id = RunId(self.fresh());
        let others = (0..self.hosts.len()).map(|host| self.host_id(host));
        let txn = Txn::replace(&seen, run, others);
        if self.keys.lost.is_empty() && self.commit(&txn).is_ok() {
            self.marked = None;
        }
    }

    // ---- acts ----

    fn act(&mut self, host: usize, outcome: Outcome) -> Result<(), Violation> {
        let act = self.hosts[host].process.as_ref().unwrap().act.clone();
        if outcome == Outcome::KeysRead {
            let keys = self.keys_read(host);
            self.hosts[host].process.as_mut().unwrap().read = Some(keys);
            return Ok(());
        }
        let event = match &act {
            Act::Exit(_) => {
                self.kill(host);
                self.lapse(host, false);
                return Ok(());
            }
            Act::Look => self.look(host, outcome == Outcome::Gathered),
            Act::GiveBack(take) => self.give_back(*take, outcome),
            Act::Send(txn) => self.send(host, txn, outcome),
            Act::Journal(entry) => {
                let journal = progress::advance(self.hosts[host].journal, *entry);
                self.hosts[host].journal = journal.map_err(|_| "the journal was written out of order")?;
                Event::Done
            }
            Act::HandOver { from, to } => self.hand_over(node_of(*from), node_of(*to), outcome),
            Act::HookBefore(_) if outcome == Outcome::Fails => Event::Failed(Arc::from("")),
            Act::Prepare | Act::HookBefore(_) | Act::HookAfter(_) => Event::Done,
            Act::Stop(member) => self.stop(host, node_of(*member))?,
            Act::Switch { member, to } => {
                self.nodes[node_of(*member)].binary = *to;
                Event::Done
            }
            Act::Start(member) => self.start_node(node_of(*member), outcome)?,
            Act::AwaitReady { member, on } => self.await_ready(node_of(*member), *on, outcome),
            Act::AwaitPolls => {
                self.rise_pending &= self.all_run(Binary::New);
                Event::Done
            }
            Act::AwaitSettled { back } => {
                let wanted = if *back { Binary::Old } else { Binary::New };
                if self.all_run(wanted) { Event::Done } else { Event::Woke { expired: false } }
            }
            Act::Wait(_) => Event::Woke { expired: false },
        };
        let process = self.hosts[host].process.as_mut().unwrap();
        process.act = process.agent.on(event).ok_or("an answer the machine did not ask for")?;
        let is_judged = match &process.act {
            Act::Stop(_) => true,
            Act::Send(txn) => turns_back(txn),
            _ => false,
        };
        if !is_judged {
            process.saw = Saw::default();
        }
        self.pass_over(host)
    }

    /// Waits end at once and ends are at once: what could happen in between can happen before or after.
    fn pass_over(&mut self, host: usize) -> Result<(), Violation> {
        match self.hosts[host].process.as_ref().map(|process| &process.act) {
            Some(Act::Wait(_) | Act::Exit(_)) => self.act(host, Outcome::Plain),
            _ => Ok(()),
        }
    }

    fn keys_read(&mut self, host: usize) -> Option<Keys> {
        self.stay_registered(host);
        self.has_quorum().then(|| self.keys.clone())
    }

    /// The agent's own thread puts its key again when the lease was lost.
    fn stay_registered(&mut self, host: usize) {
        let id = self.host_id(host);
        let is_registered = self.hosts[host].process.as_ref().unwrap().is_registered;
        if is_registered && !self.keys.agents.contains_key(&id) && self.has_quorum() {
            let participant =
                Participant { host_name: Arc::from(""), owns: vec![id_of(host)], done: vec![], waits_for: None };
            self.commit(&Txn { compares: vec![], ops: vec![Op::PutAgent(id, participant)] }).ok();
        }
    }

    fn look(&mut self, host: usize, gathered: bool) -> Event {
        let read = self.hosts[host].process.as_mut().unwrap().read.take();
        let keys = match self.faults.split_looks {
            true => read.flatten(),
            false => self.keys_read(host),
        };
        let view = self.view();
        let others_down = (0..self.nodes.len()).any(|node| node != host && !self.is_ready(node));
        let a_mark = keys.as_ref().and_then(|keys| keys.run.as_ref()).is_some_and(|run| is_marked(&run.value.state));
        let saw = Saw { another_is_down: others_down, leads: view.is_leader(id_of(host)), a_mark };
        let down = self.down_on(host);
        let running = self.hosts[host].process.as_ref().unwrap().id;
        let gone: Vec<AttemptId> = self
            .keys
            .down
            .iter()
            .chain(self.keys.lost.values())
            .filter(|at| at.value.process.boot_id == host as u128 && at.value.process != running)
            .map(|at| at.value.attempt)
            .collect();
        let fresh = self.fresh();
        let process = self.hosts[host].process.as_mut().unwrap();
        process.saw = saw;
        let lease_is_fresh =
            !process.has_lapsed || self.keys.baton.as_ref().is_some_and(|b| b.value.process == process.id);
        // The member whose step is in hand is not news to the machine, which stopped it itself.
        let down = down.into_iter().filter(|_| process.agent.in_hand().is_none()).collect();
        Event::Looked(Box::new(Looked { keys, view: Some(view), down, gathered, lease_is_fresh, gone, fresh }))
    }

    /// A revoked lease takes the baton with it, and every sending of that taking that has not landed.
    fn give_back(&mut self, take: TakeId, outcome: Outcome) -> Event {
        if outcome != Outcome::UnknownNo && self.has_quorum() {
            self.forget_lease(|baton| baton.take == take);
        }
        match outcome {
            Outcome::Plain if self.has_quorum() => Event::Done,
            Outcome::Plain => Event::Unknown { give_up: true },
            _ => Event::Unknown { give_up: false },
        }
    }

    fn forget_lease(&mut self, is_its: impl Fn(&Baton) -> bool) {
        self.late.retain(|txn| !txn.ops.iter().any(|op| matches!(op, Op::PutBaton(baton) if is_its(baton))));
        if self.keys.baton.as_ref().is_some_and(|baton| is_its(&baton.value)) {
            self.keys.baton = None;
        }
    }

    fn send(&mut self, host: usize, txn: &Txn, outcome: Outcome) -> Event {
        let answer = match outcome {
            Outcome::UnknownNo => Event::Unknown { give_up: false },
            Outcome::UnknownLate => {
                self.late.push(txn.clone());
                Event::Unknown { give_up: false }
            }
            Outcome::UnknownYes => {
                self.commit(txn).ok();
                Event::Unknown { give_up: false }
            }
            _ => match self.commit(txn) {
                Ok(revision) => Event::Yes(revision),
                Err(()) => Event::No(Box::new(self.keys.clone())),
            },
        };
        let lifts = txn.ops.iter().any(|op| matches!(op, Op::PutRun(run) if !is_marked(&run.state)));
        let process = self.hosts[host].process.as_mut().unwrap();
        process.is_registered |= is_registration(txn);
        if matches!(answer, Event::Yes(_)) {
            self.follow_mark(host, txn, lifts);
        }
        answer
    }

    /// The mark as it should be: put when a failed step's record goes, lifted by its owner only.
    fn follow_mark(&mut self, host: usize, txn: &Txn, lifts: bool) {
        let deletes_record = txn.ops.iter().any(|op| matches!(op, Op::Delete(KeyName::Down)));
        let Process { agent, saw, .. } = self.hosts[host].process.as_ref().unwrap();
        let (in_hand, saw) = (agent.in_hand(), *saw);
        let failed =
            in_hand.is_some_and(|in_hand| in_hand.step.leg == Leg::Forward && in_hand.stage == Stage::Done(Leg::Back));
        let marks = txn.ops.iter().any(|op| matches!(op, Op::PutRun(run) if is_marked(&run.state)));
        if (deletes_record && failed) || marks {
            self.marked = Some(host);
        } else if lifts && (self.marked == Some(host) || (turns_back(txn) && saw.a_mark)) {
            self.marked = None;
        }
    }

    fn hand_over(&mut self, from: usize, to: usize, outcome: Outcome) -> Event {
        if outcome == Outcome::Fails || self.leader != from || !self.is_ready(to) {
            return Event::Failed(Arc::from(""));
        }
        self.leader = to;
        Event::Done
    }

    fn stop(&mut self, host: usize, node: usize) -> Result<Event, Violation> {
        let process = self.hosts[host].process.as_ref().unwrap();
        let in_hand = process.agent.in_hand().ok_or("stopped without a journal")?;
        if self.hosts[host].journal != Some(in_hand) {
            return Err("stopped before the journal said so");
        }
        let takes_down = in_hand.stage == Stage::Stopping(in_hand.step.leg);
        if takes_down {
            if (0..self.nodes.len()).any(|other| other != node && self.nodes[other].by_our_hand) {
                return Err("two members down by our hand");
            }
            if self.marked.is_some_and(|marked| marked != node) {
                return Err("taken down under a failure mark");
            }
            if process.saw.another_is_down && self.nodes[node].is_up() {
                return Err("taken down though another was seen not ready");
            }
            if process.saw.leads {
                return Err("the leader was stopped");
            }
            if in_hand.step.leg == Leg::Forward && self.is_unapproved_last(node) {
                return Err("the run went past its hold");
            }
        }
        self.nodes[node].process = None;
        self.nodes[node].by_our_hand = true;
        Ok(Event::Done)
    }

    fn start_node(&mut self, node: usize, outcome: Outcome) -> Result<Event, Violation> {
        let binary = self.nodes[node].binary;
        if self.nodes[node].process.is_some() {
            return Ok(Event::Done);
        }
        if binary == Binary::Old && self.risen {
            return Err("an old binary was started after the version rose");
        }
        let starter = &mut self.nodes[node];
        starter.process = Some(binary);
        starter.is_sick = outcome == Outcome::Sick;
        starter.by_our_hand &= starter.is_sick;
        Ok(Event::Done)
    }

    fn await_ready(&mut self, node: usize, on: Option<Binary>, outcome: Outcome) -> Event {
        if outcome == Outcome::Slow {
            return Event::Failed(Arc::from(""));
        }
        let is_right = on.is_none_or(|on| self.nodes[node].process == Some(on));
        // Sickness passes when nothing goes wrong any more: the same command again finds a sound binary.
        match self.is_ready(node) && is_right {
            true => Event::Done,
            false if self.has_quorum() => Event::Failed(Arc::from("")),
            false => Event::NoQuorum,
        }
    }
}

//! What comes of an agent's act, and the machine's next one.

use std::{rc::Rc, sync::Arc};

use super::{
    judge::{Violation, check},
    moves::{Outcome, is_registration},
    names::{id_of, machine_of, node_of},
    world::{Late, World},
};
use agent::{
    journal::{progress, restart::Binary},
    keys::{
        Backup, Keys, Participant, ProcessId, TakeId,
        txn::{Op, Txn},
    },
    machine::act::{Act, Ending, Event, Looked},
    plan::{Verb, refusal::Refusal},
};

fn failed() -> Event {
    Event::Failed(Arc::from(""))
}

impl World {
    pub fn act(&mut self, host: usize, outcome: Outcome) -> Result<(), Violation> {
        let act = self.process(host).act.clone();
        let event = match &act {
            Act::Look if outcome == Outcome::KeysRead => {
                self.process_mut(host).read = Some(self.read_keys(host));
                return Ok(());
            }
            Act::Look => return self.look(host, outcome == Outcome::Gathered),
            Act::Downgrade(to) if matches!(outcome, Outcome::UnknownYes | Outcome::UnknownLate) => {
                // Asked again until it is known.
                self.lower_unheard(host, to.is_some(), outcome == Outcome::UnknownLate);
                return Ok(());
            }
            Act::Exit(ending) => {
                self.judge_exit(host, ending)?;
                if !self.scenario.is_fine {
                    self.end_leases_of(self.process(host).id);
                }
                self.host(host).process = None;
                // Whoever types the command reads what it says, and removes the file.
                if matches!(ending, Ending::Refused(Refusal::TwinHost { .. })) {
                    self.host(host).lost += 1;
                }
                return Ok(());
            }
            Act::Command if !self.process(host).has_let && outcome == Outcome::Plain => {
                return self.begin_command(host);
            }
            act => self.event_of(host, act, outcome)?,
        };
        self.answer(host, event)?;
        self.pass_over(host)
    }

    /// Tells the machine, and notes what it asks for next.
    fn answer(&mut self, host: usize, event: Event) -> Result<(), Violation> {
        let process = self.process_mut(host);
        process.act = process.agent.on(event).ok_or("an answer the machine did not ask for")?;
        self.judge_asking(host)?;
        let process = self.process_mut(host);
        match &process.act {
            Act::Send(txn) => {
                if let Some(Op::PutBaton(baton)) = txn.ops.first() {
                    process.kept = Some(baton.take);
                }
            }
            Act::GiveBack(_) => process.kept = None,
            _ => {}
        }
        Ok(())
    }

    /// What only this host can see is done at once where nothing else may come of it (`reduction.rs`).
    pub fn pass_over(&mut self, host: usize) -> Result<(), Violation> {
        match self.is_passed_over(host) {
            true => self.act(host, Outcome::Plain),
            false => Ok(()),
        }
    }

    fn event_of(&mut self, host: usize, act: &Act, outcome: Outcome) -> Result<Event, Violation> {
        Ok(match act {
            Act::GiveBack(take) => self.give_back(*take, outcome),
            Act::Send(txn) => self.send(host, txn, outcome),
            Act::Stop(member) if outcome == Outcome::Fails => {
                self.judge_stop(host, node_of(*member))?;
                self.tell(node_of(*member));
                failed()
            }
            _ if outcome == Outcome::Fails => failed(),
            Act::Journal(entry) => {
                let journal = progress::advance(self.hosts[host].journal, *entry);
                let journal = journal.map_err(|_| "the journal was written out of order")?;
                let step_hop = if journal.is_some() { self.hop_on(host) } else { 0 };
                let at = self.host(host);
                (at.journal, at.step_hop) = (journal, step_hop);
                self.forget_begun(host);
                Event::Done
            }
            Act::HandOver { from, to } => self.hand_over(node_of(*from), node_of(*to), outcome),
            Act::Stop(member) => self.stop(host, node_of(*member))?,
            Act::Switch { member, to } => {
                let place = self.place_on(host, *to);
                self.judge_place(place)?;
                self.nodes[node_of(*member)].binary = place;
                if outcome == Outcome::FailsDone { failed() } else { Event::Done }
            }
            Act::Start(member) => self.start_node(node_of(*member), outcome)?,
            Act::AwaitReady { member, on } => self.await_ready(host, node_of(*member), *on, outcome),
            Act::AwaitPolls => {
                self.end_polls();
                Event::Done
            }
            Act::AwaitSettled { back } => match self.is_settled(self.hop_on(host), *back) {
                true => Event::Done,
                false => Event::Woke { expired: false },
            },
            Act::Wait(_) => Event::Woke { expired: matches!(outcome, Outcome::Expired | Outcome::OutOfTime) },
            Act::Downgrade(to) => {
                self.judge_downgrade(host, to.is_some())?;
                self.downgrade(host, to.is_some(), outcome)
            }
            Act::Hop(change) => self.hop(host, change),
            Act::BackUp => self.back_up(host)?,
            Act::Examine => Event::Examined(Arc::default()),
            Act::Spawn => self.spawn(host),
            Act::Command if outcome == Outcome::NotLet => Event::Unconfirmed(Arc::from("")),
            Act::Command | Act::AwaitHost(_) => Event::Done,
            Act::Prepare | Act::Confirm(_) | Act::HookBefore(_) | Act::HookAfter(_) | Act::Look | Act::Exit(_) => {
                Event::Done
            }
            Act::Archive(_) | Act::AddMember(_) | Act::StartNew(..) | Act::ChangeRole(_) | Act::Retire(_) => {
                return Err("a rollout was to change members");
            }
        })
    }

    // ---- looks ----

    fn look(&mut self, host: usize, is_window_over: bool) -> Result<(), Violation> {
        let keys = match self.left.split_looks {
            true => self.process_mut(host).read.take().flatten(),
            false => self.read_keys(host),
        };
        self.read();
        let looked = Looked {
            keys: keys.as_deref().cloned(),
            view: Some(self.view()),
            removed: Vec::new(),
            down: self.down_on(host),
            is_window_over,
            closed_until: None,
            // A lease that lapses between this look and the stop is what freezing is for.
            lease_is_fresh: true,
            gone: self.gone(host),
            fresh: self.fresh(),
            survey: None,
        };
        self.answer(host, Event::Looked(Box::new(looked)))?;
        self.judge_check(host)?;
        self.judge_guard(host, keys.as_deref())?;
        self.judge_ending(host, keys.as_deref(), is_window_over)?;
        self.pass_over(host)
    }

    /// Processes in this host's name that are seen to be gone: on this machine, and not the one that runs; or on another
    /// one, and none of its leases is renewed.
    fn gone(&self, host: usize) -> Vec<ProcessId> {
        let running = self.process(host).id;
        let id = self.id_of_host(host);
        let agent = self.keys.agents.get(&id).map(|at| at.value.process);
        let baton = self.keys.baton.iter().filter(|at| at.value.host == id).map(|at| at.value.process);
        let records = self.keys.step.iter().chain(self.keys.abandoned.values()).map(|at| at.value.process);
        let named = agent.into_iter().chain(baton).chain(records).filter(|process| *process != running);
        let is_here = |process: &ProcessId| process.boot_id == machine_of(host);
        named.filter(|process| is_here(process) || !self.renews(*process)).collect()
    }

    /// Whether this process runs, and keeps alive a lease that one of these keys is bound to.
    fn renews(&self, process: ProcessId) -> bool {
        let agents = self.keys.agents.values().map(|at| at.value.process);
        self.runs(process)
            && agents.chain(self.keys.baton.iter().map(|at| at.value.process)).any(|other| other == process)
    }

    fn read_keys(&mut self, host: usize) -> Option<Rc<Keys>> {
        self.stay_registered(host);
        self.has_quorum().then(|| self.keys.clone())
    }

    /// An agent puts its key again when the lease was lost, or where it was not put.
    fn stay_registered(&mut self, host: usize) {
        let id = self.id_of_host(host);
        let process = self.process(host).id;
        if self.process(host).is_registered && !self.keys.agents.contains_key(&id) && self.has_quorum() {
            // As `Me::participant` has it.
            let is_guard = matches!(self.process(host).verb, Verb::Guard(_));
            let seats = if is_guard { Default::default() } else { self.scenario.seats(host, id) };
            let participant = Participant {
                host_name: Arc::default(),
                process,
                seats,
                done: vec![],
                waits_for: None,
                waits_since: None,
                waits_until: None,
                does: None,
                backed_up: None,
                is_closed: false,
                unknown: Default::default(),
            };
            let txn = Txn { compares: vec![], ops: vec![Op::PutAgent(id, participant)] };
            self.commit(&txn, self.by(host)).ok();
        }
    }

    /// For the run that stands.
    fn back_up(&mut self, host: usize) -> Result<Event, Violation> {
        check(self.process(host).agent.holds_baton(), "backed up without the baton")?;
        self.backed_up = true;
        let (member, bytes) = (id_of(0), 1);
        let backup =
            Backup { host_name: Arc::default(), path: Arc::default(), member, revision: None, sha256: None, bytes };
        Ok(Event::BackedUp(Arc::new(backup)))
    }

    // ---- Txns and leases ----

    /// A revoked lease takes the baton with it.
    fn give_back(&mut self, take: TakeId, outcome: Outcome) -> Event {
        let is_done = matches!(outcome, Outcome::Plain | Outcome::UnknownYes) && self.has_quorum();
        if is_done {
            self.end_lease(|baton| baton.take == take);
        }
        match outcome {
            Outcome::Plain if is_done => Event::Done,
            Outcome::Plain | Outcome::GaveUp => Event::Unknown { give_up: true },
            _ => Event::Unknown { give_up: false },
        }
    }

    fn send(&mut self, host: usize, txn: &Txn, outcome: Outcome) -> Event {
        let by = self.by(host);
        self.process_mut(host).is_registered |= is_registration(txn);
        let give_up = matches!(outcome, Outcome::GaveUp | Outcome::GaveUpLate | Outcome::OutOfTime);
        match outcome {
            Outcome::UnknownNo | Outcome::GaveUp | Outcome::OutOfTime => Event::Unknown { give_up },
            Outcome::UnknownLate | Outcome::GaveUpLate => {
                self.late.push(Late { txn: txn.clone(), by });
                Event::Unknown { give_up }
            }
            Outcome::UnknownYes => {
                self.commit(txn, by).ok();
                Event::Unknown { give_up }
            }
            _ => match self.commit(txn, by) {
                Ok(revision) => Event::Yes(revision),
                Err(()) => Event::No(Box::new((*self.keys).clone())),
            },
        }
    }

    // ---- members ----

    fn hand_over(&mut self, from: usize, to: usize, outcome: Outcome) -> Event {
        let to = if let Outcome::Passes(node) = outcome { node.into() } else { to };
        if self.leader != from || !self.is_ready(to) {
            return failed();
        }
        self.leader = to;
        Event::Done
    }

    /// One that has ended by itself is not told.
    pub fn tell(&mut self, node: usize) {
        if self.nodes[node].process.is_some() {
            self.nodes[node].tell();
        }
    }

    fn stop(&mut self, host: usize, node: usize) -> Result<Event, Violation> {
        self.judge_stop(host, node)?;
        self.nodes[node].end();
        self.nodes[node].by_our_hand = true;
        Ok(Event::Done)
    }

    fn start_node(&mut self, node: usize, outcome: Outcome) -> Result<Event, Violation> {
        match self.nodes[node].process {
            Some(_) if self.is_on_its_way_down(node) => return Ok(failed()),
            Some(_) => return Ok(Event::Done),
            None => {}
        }
        self.judge_start(node)?;
        let starter = &mut self.nodes[node];
        (starter.process, starter.has_followed, starter.is_supervised) = (Some(starter.binary), false, false);
        match outcome {
            Outcome::Sick => starter.is_sick = true,
            Outcome::Dies => starter.end(),
            _ => starter.by_our_hand = false,
        }
        Ok(Event::Done)
    }

    fn await_ready(&mut self, host: usize, node: usize, on: Option<Binary>, outcome: Outcome) -> Event {
        match self.is_healed(host, node, on) {
            true if outcome != Outcome::Slow => Event::Done,
            _ if self.has_quorum() => failed(),
            _ => Event::NoQuorum,
        }
    }
}

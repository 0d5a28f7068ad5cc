//! What comes of an agent's act, and the machine's next one.

use std::{rc::Rc, sync::Arc};

use super::{
    cluster::Said,
    judge::{Violation, check},
    moves::{Outcome, is_registration},
    names::process_id,
    world::{Call, Late, Read, World},
};
use agent::{
    keys::{
        Keys, ProcessId, TakeId,
        membership::RoleChange,
        txn::{Op, Txn},
    },
    machine::{
        act::{Act, Event, Looked},
        agent::Agent,
    },
    plan::{Verb, membership::RoleStep},
};
use proto::MemberId;

fn failed() -> Event {
    Event::Failed(Arc::from(""))
}

impl World {
    pub fn start(&mut self, host: usize, verb: Verb) -> Result<(), Violation> {
        let id = process_id(host, self.fresh());
        let seated = self.named(host);
        let of_host = self.id_of_host(host);
        let me = self.scenario.me(self.scenario.seats(host, of_host, seated), of_host, verb, self.intent.clone());
        let mut agent = Agent::new(me, self.scenario.rules, id);
        let down = self.down_of(host, seated);
        let act = agent.on(Event::Started { in_hand: None, down }).expect("the first event is always answered");
        let process = super::world::Process {
            id,
            verb,
            agent,
            act,
            read: None,
            kept: None,
            is_registered: false,
            member: seated,
            seated,
        };
        self.host(host).process = Some(process);
        self.pass_over(host)
    }

    /// The member that has this seat's name.
    pub fn named(&self, host: usize) -> Option<MemberId> {
        self.listed.iter().find(|one| one.seat == host && one.is_named).map(|one| one.id)
    }

    /// A newcomer that is no member yet, or one whose data is gone, is started by the plan alone.
    fn down_of(&self, host: usize, member: Option<MemberId>) -> Vec<MemberId> {
        let at = &self.hosts[host];
        member.filter(|_| !at.runs && at.data.is_some()).into_iter().collect()
    }

    pub fn act(&mut self, host: usize, outcome: Outcome) -> Result<(), Violation> {
        let act = self.process(host).act.clone();
        let event = match &act {
            Act::Look if outcome == Outcome::Read => {
                let read = self.read(host);
                self.process_mut(host).read = Some(Rc::new(read));
                return Ok(());
            }
            Act::Look => return self.look(host, outcome == Outcome::Gathered),
            Act::Exit(ending) => {
                self.judge_exit(ending)?;
                self.end_leases_of(self.process(host).id);
                self.host(host).process = None;
                return Ok(());
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

    /// What only this host can see, and what can end in one way alone, is done at once.
    fn pass_over(&mut self, host: usize) -> Result<(), Violation> {
        let is_passed = match &self.process(host).act {
            _ if self.is_electing() => false,
            Act::Prepare | Act::Examine | Act::Exit(_) => true,
            Act::Send(txn) if is_registration(txn) => self.has_quorum(),
            Act::Wait(_) => self.outcomes(self.process(host)).len() == 1,
            _ => false,
        };
        if is_passed { self.act(host, Outcome::Plain) } else { Ok(()) }
    }

    fn event_of(&mut self, host: usize, act: &Act, outcome: Outcome) -> Result<Event, Violation> {
        Ok(match act {
            Act::GiveBack(take) => self.give_back(*take, outcome),
            Act::Send(txn) => self.send(txn, outcome),
            Act::HandOver { to, .. } => self.hand_over(*to),
            Act::Start(_) => self.start_member(host),
            Act::AwaitReady { member, .. } => match self.member(*member) {
                Some(one) if self.is_up(one) && self.has_quorum() => Event::Done,
                _ if self.has_quorum() => failed(),
                _ => Event::NoQuorum,
            },
            Act::AwaitSettled { .. } => match self.listed.iter().all(|one| !one.is_named || self.is_up(one)) {
                true => Event::Done,
                false => Event::Woke { expired: false },
            },
            Act::Wait(_) => Event::Woke { expired: matches!(outcome, Outcome::Expired | Outcome::OutOfTime) },
            Act::Archive(_) => self.archive(host, outcome)?,
            Act::Retire(_) => self.retire(host, outcome)?,
            Act::StartNew(_, id) => self.start_new(host, *id, outcome)?,
            Act::AddMember(_) => self.call(Call::Add(host), outcome)?,
            Act::ChangeRole(RoleStep { member, change: RoleChange::Promote }) => {
                self.call(Call::Promote(*member), outcome)?
            }
            Act::ChangeRole(RoleStep { member, change: RoleChange::Leave }) => {
                self.call(Call::Remove(*member), outcome)?
            }
            Act::Prepare => Event::Done,
            Act::Examine => Event::Examined(Arc::default()),
            _ => return Err("an act that no change of members asks for"),
        })
    }

    // ---- looks ----

    fn read(&mut self, host: usize) -> Read {
        self.stay_registered(host);
        Read { keys: self.has_quorum().then(|| self.keys.clone()), seen: self.seen() }
    }

    fn look(&mut self, host: usize, is_window_over: bool) -> Result<(), Violation> {
        let read = match self.process_mut(host).read.take() {
            Some(read) => read,
            None => Rc::new(self.read(host)),
        };
        let keys = read.keys.as_deref();
        let is_same = keys.is_some_and(|keys| {
            keys.run.as_ref().map(|run| run.modified) == self.keys.run.as_ref().map(|run| run.modified)
                && keys.step.as_ref().map(|step| step.modified) == self.keys.step.as_ref().map(|step| step.modified)
        });
        let process = self.process(host);
        let (member, seated) = (process.member, process.seated);
        let is_removed = |id: &MemberId| !read.seen.members.iter().any(|(one, _)| one.id == *id);
        let looked = Looked {
            keys: keys.cloned(),
            view: Some(self.view(&read.seen)),
            removed: seated.filter(is_removed).filter(|_| self.has_quorum()).into_iter().collect(),
            down: self.down_of(host, member),
            is_window_over,
            closed_until: None,
            // A lease that runs out between this look and a call is what freezing is for.
            lease_is_fresh: true,
            gone: self.gone(host),
            fresh: self.fresh(),
            survey: (is_same && self.has_quorum()).then(|| self.survey(host)),
        };
        self.answer(host, Event::Looked(Box::new(looked)))?;
        self.judge_check(host, &read.seen)?;
        self.pass_over(host)
    }

    /// Processes in this host's name that have ended.
    fn gone(&self, host: usize) -> Vec<ProcessId> {
        let (running, id) = (self.process(host).id, self.id_of_host(host));
        let agent = self.keys.agents.get(&id).map(|at| at.value.process);
        let baton = self.keys.baton.iter().filter(|at| at.value.host == id).map(|at| at.value.process);
        let records = self.keys.step.iter().filter(|at| at.value.host == id).map(|at| at.value.process);
        agent.into_iter().chain(baton).chain(records).filter(|process| *process != running).collect()
    }

    /// An agent puts its key again when the lease was lost.
    fn stay_registered(&mut self, host: usize) {
        let (id, process) = (self.id_of_host(host), self.process(host));
        if process.is_registered && !self.keys.agents.contains_key(&id) && self.has_quorum() {
            let seats = self.scenario.seats(host, id, process.seated);
            let me = self.scenario.me(seats, id, process.verb, self.intent.clone());
            let txn = Txn { compares: vec![], ops: vec![Op::PutAgent(id, me.participant(process.id))] };
            self.commit(&txn, super::world::By).ok();
        }
    }

    // ---- Txns and leases ----

    fn give_back(&mut self, take: TakeId, outcome: Outcome) -> Event {
        let is_done = matches!(outcome, Outcome::Plain | Outcome::UnknownYes) && self.has_quorum();
        if is_done {
            self.end_lease(|baton| baton.take == take);
        }
        match outcome {
            Outcome::Plain if is_done => Event::Done,
            Outcome::Plain => Event::Unknown { give_up: true },
            _ => Event::Unknown { give_up: false },
        }
    }

    fn send(&mut self, txn: &Txn, outcome: Outcome) -> Event {
        if let Some(Op::PutAgent(id, _)) = txn.ops.first() {
            let host = (0..self.hosts.len()).find(|host| self.id_of_host(*host) == *id);
            host.into_iter().for_each(|host| self.process_mut(host).is_registered = true);
        }
        match outcome {
            Outcome::UnknownNo | Outcome::OutOfTime => Event::Unknown { give_up: outcome == Outcome::OutOfTime },
            Outcome::UnknownLate => {
                self.late.push(Late { txn: txn.clone(), by: super::world::By });
                Event::Unknown { give_up: false }
            }
            Outcome::UnknownYes => {
                self.commit(txn, super::world::By).ok();
                Event::Unknown { give_up: false }
            }
            _ => match self.commit(txn, super::world::By) {
                Ok(revision) => Event::Yes(revision),
                Err(()) => Event::No(Box::new(Keys::clone(&self.keys))),
            },
        }
    }

    // ---- members ----

    fn call(&mut self, call: Call, outcome: Outcome) -> Result<Event, Violation> {
        match outcome {
            Outcome::Fails => return Ok(failed()),
            Outcome::UnknownNo => return Ok(Event::Done),
            Outcome::UnknownLate => {
                self.calls.push(call);
                self.calls.sort();
                return Ok(Event::Done);
            }
            _ => {}
        }
        let said = self.arrive(call)?;
        Ok(if said == Some(Said::Refused) && outcome == Outcome::Plain { failed() } else { Event::Done })
    }

    fn hand_over(&mut self, to: MemberId) -> Event {
        match self.voters().any(|one| one.id == to && self.is_up(one)) && self.has_quorum() {
            true => {
                self.leader = to;
                Event::Done
            }
            false => failed(),
        }
    }

    /// A process starts on the data that is there; without data none does.
    fn start_member(&mut self, host: usize) -> Event {
        if self.hosts[host].data.is_none() {
            return failed();
        }
        self.run_process(host);
        Event::Done
    }

    pub fn run_process(&mut self, host: usize) {
        let votes = self.hosts[host].data.and_then(|id| self.member(id)).is_some_and(|one| !one.is_learner);
        let at = self.host(host);
        (at.runs, at.is_caught_up) = (true, votes);
    }

    fn start_new(&mut self, host: usize, id: MemberId, outcome: Outcome) -> Result<Event, Violation> {
        if self.hosts[host].runs {
            return Ok(Event::Done);
        }
        self.process_mut(host).member = Some(id);
        if self.hosts[host].data.is_none() {
            self.judge_begin(id)?;
            if outcome == Outcome::Fails || !self.is_listed(id) || !self.has_quorum() {
                return Ok(failed());
            }
            self.with(id, |one| one.is_begun = true);
            self.host(host).data = Some(id);
        }
        self.run_process(host);
        if outcome == Outcome::FailsDone {
            self.host(host).runs = false;
            return Ok(failed());
        }
        Ok(Event::Done)
    }

    fn archive(&mut self, host: usize, outcome: Outcome) -> Result<Event, Violation> {
        if self.hosts[host].runs || outcome == Outcome::Fails {
            return Ok(failed());
        }
        self.judge_aside(&self.hosts[host])?;
        self.host(host).data = None;
        Ok(Event::Done)
    }

    fn retire(&mut self, host: usize, outcome: Outcome) -> Result<Event, Violation> {
        self.process_mut(host).member = None;
        check(
            !self.hosts[host].runs || self.hosts[host].data.is_none_or(|id| !self.is_listed(id)),
            "a listed member was stopped",
        )?;
        self.host(host).runs = false;
        self.archive(host, outcome)
    }
}

//! The world around the machines as one value: a store, the list of members, hosts with their data and processes, and calls that
//! are under way.

use std::{rc::Rc, sync::Arc};

use super::{
    faults::Faults,
    names::{host_id, id_of},
    scenario::{Kind, Scenario},
};
use agent::{
    keys::{Intent, Keys, ProcessId, RunState, TakeId, host_id::HostId, txn::Txn},
    machine::{act::Act, agent::Agent},
    plan::Verb,
};
use proto::MemberId;

/// Everything there is. Parts that seldom change are shared between worlds.
#[derive(Clone)]
pub struct World {
    pub scenario: Rc<Scenario>,
    pub intent: Arc<Intent>,
    pub keys: Rc<Keys>,
    /// Txns whose sender got no answer: they may be done at any time.
    pub late: Vec<Late>,
    /// Calls that change members and were not answered: as well.
    pub calls: Vec<Call>,
    /// The members, by the word of a quorum, in order of id.
    pub listed: Vec<Listed>,
    pub hosts: Vec<Rc<Host>>,
    pub leader: MemberId,
    /// What may still go wrong.
    pub left: Faults,
    /// The store's revision.
    pub revision: i64,
    /// The last id that was made.
    pub made: u128,
    /// How many members there ever were.
    pub members: usize,
}

/// A Txn under way. Nothing of its sender matters here.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Late {
    pub txn: Txn,
    pub by: By,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct By;

/// A call that compares nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// Add a learner for this seat.
    Add(usize),
    Promote(MemberId),
    Remove(MemberId),
}

/// A member, as it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Listed {
    pub id: MemberId,
    /// The seat by whose address it is reached; one that nobody has where a person added it.
    pub seat: usize,
    pub is_learner: bool,
    /// It has joined and said its name.
    pub is_named: bool,
    /// Its process was begun once: what it then promised is in its data.
    pub is_begun: bool,
    /// The leader has seen it hold most of what there is.
    pub is_synced: bool,
}

#[derive(Clone)]
pub struct Host {
    pub is_dead: bool,
    /// Whose data is in the directory.
    pub data: Option<MemberId>,
    /// Whether the member's process runs, on that data.
    pub runs: bool,
    /// Whether that process has taken in what there is.
    pub is_caught_up: bool,
    pub process: Option<Process>,
}

#[derive(Clone)]
pub struct Process {
    pub id: ProcessId,
    pub verb: Verb,
    pub agent: Agent,
    /// What it was asked to do.
    pub act: Act,
    /// What the first half of a look has found, while the second is not made.
    pub read: Option<Rc<Read>>,
    /// The lease that is kept alive.
    pub kept: Option<TakeId>,
    pub is_registered: bool,
    /// Which member the process on this host is, as the agent knows.
    pub member: Option<MemberId>,
    /// The seat's member when the agent began.
    pub seated: Option<MemberId>,
}

/// What a look has read first.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Read {
    pub keys: Option<Rc<Keys>>,
    pub seen: Seen,
}

/// The members at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    pub members: Vec<(Listed, State)>,
    pub leader: Option<MemberId>,
}

/// What a member says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    NeverStarted,
    Silent,
    /// Without a quorum, or behind.
    NotReady,
    Ready,
}

/// The seat of a member that no host of the playbook has.
pub const NOBODYS: usize = 99;

impl World {
    pub fn new(scenario: &Scenario) -> Self {
        let listed = (0..scenario.voters).map(|seat| Listed {
            id: id_of(seat),
            seat,
            is_learner: false,
            is_named: true,
            is_begun: true,
            is_synced: true,
        });
        let host = |host| {
            let is_dead = scenario.dead == Some(host);
            let has_data = host < scenario.voters && !is_dead && scenario.emptied != Some(host);
            let data = has_data.then(|| id_of(host));
            Rc::new(Host { is_dead, data, runs: has_data, is_caught_up: has_data, process: None })
        };
        Self {
            scenario: Rc::new(scenario.clone()),
            intent: Arc::new(scenario.intent()),
            keys: Rc::new(Keys { hosts: super::held::records(scenario), ..Keys::default() }),
            late: Vec::new(),
            calls: Vec::new(),
            listed: listed.collect(),
            hosts: (0..scenario.hosts).map(host).collect(),
            leader: id_of(0),
            left: scenario.faults,
            revision: 0,
            made: scenario.hosts as u128,
            members: scenario.voters,
        }
    }

    pub fn host(&mut self, host: usize) -> &mut Host {
        Rc::make_mut(&mut self.hosts[host])
    }

    pub fn process(&self, host: usize) -> &Process {
        self.hosts[host].process.as_ref().expect("only asked of a host whose agent runs")
    }

    pub fn process_mut(&mut self, host: usize) -> &mut Process {
        self.host(host).process.as_mut().expect("only asked of a host whose agent runs")
    }

    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.hosts.iter().filter_map(|host| host.process.as_ref())
    }

    /// Whether this process is there still.
    pub fn runs(&self, process: ProcessId) -> bool {
        self.processes().any(|one| one.id == process)
    }

    pub fn id_of_host(&self, host: usize) -> HostId {
        host_id(host, 0)
    }

    /// An id that nothing in this world has.
    pub fn fresh(&mut self) -> u128 {
        self.made += 1;
        self.made
    }

    /// Nothing of a Txn's sender is followed.
    pub fn follow(&mut self, _: &Txn, _: By) {}

    // ---- members ----

    pub fn member(&self, id: MemberId) -> Option<&Listed> {
        self.listed.iter().find(|one| one.id == id)
    }

    pub fn is_listed(&self, id: MemberId) -> bool {
        self.member(id).is_some()
    }

    pub fn voters(&self) -> impl Iterator<Item = &Listed> + Clone {
        self.listed.iter().filter(|one| !one.is_learner)
    }

    /// Whether its own process runs, on its own data.
    pub fn is_up(&self, one: &Listed) -> bool {
        self.hosts.get(one.seat).is_some_and(|host| host.runs && host.data == Some(one.id))
    }

    pub fn voters_up(&self) -> usize {
        self.voters().filter(|one| self.is_up(one)).count()
    }

    pub fn has_quorum(&self) -> bool {
        self.voters_up() > self.voters().count() / 2
    }

    fn leads(&self) -> bool {
        self.voters().any(|one| one.id == self.leader && self.is_up(one))
    }

    /// Whether a quorum must elect before anything else can be seen of it.
    pub fn is_electing(&self) -> bool {
        self.has_quorum() && !self.leads()
    }

    pub fn seen(&self) -> Seen {
        let has_quorum = self.has_quorum();
        let state = |one: &Listed| match self.is_up(one) {
            _ if !one.is_named => State::NeverStarted,
            false => State::Silent,
            true if has_quorum && (!one.is_learner || self.hosts[one.seat].is_caught_up) => State::Ready,
            true => State::NotReady,
        };
        let leader = Some(self.leader).filter(|_| has_quorum && self.leads());
        Seen { members: self.listed.iter().map(|one| (*one, state(one))).collect(), leader }
    }

    // ---- the end ----

    /// Whether all are listed that are to be, and nobody else votes.
    pub fn is_reached(&self) -> bool {
        let votes = |seat| self.voters().any(|one| one.seat == seat);
        let is_gone = |member: usize| match self.scenario.kind {
            Kind::Replace { by, .. } if by == member => true,
            _ => !self.listed.iter().any(|one| one.seat == member),
        };
        match &self.scenario.kind {
            Kind::Scale(seats) => seats.iter().all(|seat| votes(*seat)) && self.voters().count() == seats.len(),
            Kind::Replace { member, by } => votes(*by) && is_gone(*member),
        }
    }

    /// Whether a host that is to have a member at the end is gone for good, or has lost the data of its voter: that is another run.
    pub fn is_beyond_reach(&self) -> bool {
        let scenario = &self.scenario;
        let run = self.keys.run.as_ref().and_then(|run| run.value.membership.as_ref());
        let is_leaving = |id| run.is_some_and(|membership| membership.leaving.contains(&id));
        let has_forgotten = |one: &Listed| {
            let host = self.hosts.get(one.seat);
            scenario.wants(one.seat) && !is_leaving(one.id) && host.is_some_and(|host| host.data != Some(one.id))
        };
        (0..scenario.hosts).any(|host| scenario.wants(host) && self.hosts[host].is_dead)
            || (run.is_some() && self.voters().any(has_forgotten))
    }

    /// So many voters are gone for good that the rest has no quorum: of two one, or of more as many as the scenario takes away.
    fn is_lost(&self) -> bool {
        let scenario = &self.scenario;
        let taken = scenario.faults.vanish + scenario.faults.die + u8::from(scenario.dead.is_some());
        let is_there = |one: &&Listed| self.hosts.get(one.seat).is_some_and(|host| host.data == Some(one.id));
        let (voters, there) = (self.voters().count(), self.voters().filter(is_there).count());
        there <= voters / 2 && (voters == 2 || taken > 1)
    }

    /// Everything done, or given up in order; nothing left behind, nobody at work.
    pub fn is_over(&self) -> bool {
        let is_idle =
            self.late.is_empty() && self.calls.is_empty() && self.hosts.iter().all(|host| host.process.is_none());
        if self.is_lost() {
            return true;
        }
        let run = self.keys.run.as_ref().map(|run| &run.value);
        let has_join = run.and_then(|run| run.membership.as_ref()).is_some_and(|one| !one.joins.is_empty());
        if !is_idle || self.keys.step.is_some() || self.keys.baton.is_some() || has_join {
            return false;
        }
        match run.map(|run| &run.state) {
            Some(RunState::Done { .. }) => self.is_cleaned() || self.scenario.faults.has_persons(),
            _ => self.is_beyond_reach() && self.has_quorum() && !self.listed.iter().any(|one| one.is_learner),
        }
    }

    /// Whether the data of nobody lies where a host of the run could put it aside, and no process of nobody runs.
    fn is_cleaned(&self) -> bool {
        let is_clean = |host: &Rc<Host>| host.data.is_none_or(|id| self.is_listed(id));
        self.scenario.agents.iter().all(|host| self.hosts[*host].is_dead || is_clean(&self.hosts[*host]))
    }
}

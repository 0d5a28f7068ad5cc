//! The world around the machines as one value: a store, members, processes, clocks and faults.
//!
//! A member is an installed binary, a process and a health. What the world does by itself is here: an
//! election, and the leader's raising of the cluster version some time after every member was seen on the
//! new release at once. What else can happen is in `moves.rs`.

use std::{rc::Rc, sync::Arc};

use super::{
    errand::Errand,
    faults::Faults,
    judge::Violation,
    names::{copied_id, host_id, id_of, process_id},
    scenario::Scenario,
    way::Place,
};
use agent::{
    journal::{progress::InHand, restart},
    keys::{AttemptId, Intent, Keys, ProcessId, RunResult, RunState, TakeId, host_id::HostId, txn::Txn},
    machine::{act::Act, agent::Agent},
    observe::view::{Answer, ClusterView, Health, Leader, Member, Report, Role},
    plan::Verb,
};
use proto::{ClusterId, ClusterVersion, LogIndex, MemberId, Revision, Term};

/// Everything there is. Parts that seldom change are shared between worlds.
#[derive(Clone)]
pub struct World {
    pub scenario: Rc<Scenario>,
    /// The intent at each hop of the way.
    pub intents: Rc<[Arc<Intent>]>,
    pub keys: Rc<Keys>,
    /// Txns whose sender got no answer, or that an operator has begun: they may be done at any time.
    pub late: Vec<Late>,
    pub nodes: Vec<Node>,
    pub hosts: Vec<Rc<Host>>,
    pub leader: usize,
    pub version: ClusterVersion,
    pub rise: Rise,
    /// The last release of a hop that is done.
    pub reached: Place,
    /// Whether a downgrade is enabled (`downgrade.rs`).
    pub is_going_down: bool,
    /// Calls that enable one and were not answered: they may be done at any time.
    pub late_calls: u8,
    /// A step of this member failed and nobody with a right to has lifted the mark, whatever the keys say.
    pub marked: Option<MemberId>,
    /// A person has said that the last member of the run may go.
    pub approved: bool,
    /// A member's database was saved for the run that stands.
    pub backed_up: bool,
    /// What may still go wrong.
    pub left: Faults,
    /// The store's revision.
    pub revision: i64,
    /// The last id that was made.
    pub made: u128,
    /// What a write has broken.
    pub broken: Option<Violation>,
}

/// How far the cluster version is on its way to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rise {
    Low,
    /// A leader has seen every member on the new release at once, and may propose the rise.
    Polled,
    /// Proposed by a leader that had lost its quorum. The next quorum may decide it, but not after it has answered a
    /// linearizable read: a leader has decided by then what stands in its log (the raft paper, section 8).
    Logged,
}

/// A Txn under way.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Late {
    pub txn: Txn,
    pub by: By,
}

/// What the world must know of a Txn's sender to judge it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct By {
    /// What was typed; `None` for `abandon` and `--replace`.
    pub verb: Option<Verb>,
    /// The member whose failed step its host has in hand.
    pub failed: Option<MemberId>,
    /// One of the sender's members.
    pub owner: Option<MemberId>,
    /// The hop that it is about; `None` for `abandon` and `--replace`.
    pub hop: Option<Place>,
    /// The hop that it was typed for, of `rollback` and `finalize`.
    pub meant: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node {
    /// Of which release binary and files are installed.
    pub binary: Place,
    /// What runs.
    pub process: Option<Place>,
    pub is_sick: bool,
    /// Whether its data can be read by a lower release.
    pub is_fit: bool,
    /// Down, or not yet ready again, because an agent stopped it; or told to stop, and so down at any moment.
    pub by_our_hand: bool,
    /// It was told to stop, and serves on until it has ended.
    pub is_told: bool,
    /// It has ended so, and was not started since.
    pub has_followed: bool,
    /// It went down with its host, or by a command, and its supervisor may start it again.
    pub is_supervised: bool,
}

#[derive(Clone)]
pub struct Host {
    /// How many state directories it has lost.
    pub lost: u8,
    pub journal: Option<InHand>,
    /// The hop of the step in it, as the journal has both releases.
    pub step_hop: Place,
    pub process: Option<Process>,
    /// Its first process: another one since it has restarted.
    pub init: ProcessId,
    /// What a guarded command does to it.
    pub errand: Errand,
    /// The attempt whose command has begun.
    pub begun: Option<AttemptId>,
}

#[derive(Clone)]
pub struct Process {
    pub id: ProcessId,
    pub verb: Verb,
    /// The hop that it is about.
    pub hop: Place,
    /// The hop that it was typed for, of `rollback` and `finalize`.
    pub meant: Place,
    pub agent: Agent,
    /// What it was asked to do.
    pub act: Act,
    /// The keys that a look has read, while it has not asked the members yet.
    pub read: Option<Option<Rc<Keys>>>,
    /// The lease that is kept alive: from the taking of the baton until it is given back.
    pub kept: Option<TakeId>,
    /// Whether it has said that it takes part, or tried to: it says so again.
    pub is_registered: bool,
    /// Whether it has let its command begin.
    pub has_let: bool,
}

impl Process {
    /// The restart that its agent has in hand.
    pub fn restart(&self) -> Option<restart::InHand> {
        self.agent.in_hand()?.restart()
    }
}

impl Node {
    pub fn is_up(&self) -> bool {
        self.process.is_some() && !self.is_sick
    }

    pub fn end(&mut self) {
        self.process = None;
        self.is_sick = false;
        self.is_told = false;
    }

    /// It goes on for a while.
    pub fn tell(&mut self) {
        (self.is_told, self.by_our_hand) = (true, true);
    }

    pub fn recover(&mut self) {
        self.is_sick = false;
        self.by_our_hand = self.is_told;
    }
}

impl World {
    pub fn new(scenario: &Scenario) -> Self {
        let (binary, process) = (0, Some(0));
        let node = Node {
            binary,
            process,
            is_sick: false,
            is_fit: false,
            by_our_hand: false,
            is_told: false,
            has_followed: false,
            is_supervised: false,
        };
        let host = |host| {
            let init = process_id(host, host as u128 + 1);
            let errand = Errand::Idle;
            Rc::new(Host { lost: 0, journal: None, step_hop: 0, process: None, init, errand, begun: None })
        };
        Self {
            scenario: Rc::new(scenario.clone()),
            intents: scenario.intents().into(),
            keys: Rc::default(),
            late: Vec::new(),
            nodes: vec![node; scenario.owners.len()],
            hosts: (0..scenario.hosts()).map(host).collect(),
            leader: 0,
            version: scenario.version(0),
            rise: Rise::Low,
            reached: 0,
            is_going_down: false,
            late_calls: 0,
            marked: None,
            approved: false,
            backed_up: false,
            left: scenario.faults,
            revision: 0,
            made: scenario.hosts() as u128,
            broken: None,
        }
    }

    pub fn host(&mut self, host: usize) -> &mut Host {
        Rc::make_mut(&mut self.hosts[host])
    }

    /// Who an agent on this host says it is.
    pub fn id_of_host(&self, host: usize) -> HostId {
        match self.hosts[host].lost {
            0 if self.scenario.has_twins && host < 2 => copied_id(),
            lost => host_id(host, lost),
        }
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

    /// An id that nothing in this world has.
    pub fn fresh(&mut self) -> u128 {
        self.made += 1;
        self.made
    }

    // ---- members ----

    pub fn has_quorum(&self) -> bool {
        self.nodes.iter().filter(|node| node.is_up()).count() > self.nodes.len() / 2
    }

    pub fn is_ready(&self, node: usize) -> bool {
        self.nodes[node].is_up() && self.has_quorum()
    }

    pub fn all_run(&self, place: Place) -> bool {
        self.nodes.iter().all(|node| node.process == Some(place) && !node.is_sick)
    }

    /// Whether the version may rise, as far as the releases go.
    fn all_run_above(&self) -> bool {
        let is_above = |place| self.scenario.version(place) > self.version;
        self.nodes.iter().all(|node| node.process.is_some_and(is_above) && !node.is_sick)
    }

    /// Whether a quorum must elect before anything else can be seen of it.
    pub fn is_electing(&self) -> bool {
        !self.nodes[self.leader].is_up() && self.has_quorum()
    }

    pub fn may_rise(&self) -> bool {
        matches!(self.rise, Rise::Polled | Rise::Logged)
    }

    /// What polls of every member's version come to, once a leader has made them.
    pub fn poll(&mut self) {
        if !self.is_going_down && self.all_run_above() {
            self.rise = Rise::Polled;
        }
    }

    /// Time for every poll that was under way to end.
    pub fn end_polls(&mut self) {
        if self.rise == Rise::Polled && !self.all_run_above() {
            self.rise = if self.has_quorum() { Rise::Low } else { Rise::Logged };
        }
    }

    /// A linearizable read was answered, or not.
    pub fn read(&mut self) {
        if self.rise == Rise::Logged && self.has_quorum() {
            self.rise = Rise::Low;
        }
    }

    pub fn view(&self) -> ClusterView {
        let leader = match self.has_quorum() {
            true => Leader::Agreed { member: id_of(self.leader), term: Term(1) },
            false => Leader::Unknown,
        };
        let members = (0..self.nodes.len()).map(|node| self.member(node)).collect();
        ClusterView { cluster: ClusterId(1), leader, members, warnings: Vec::new() }
    }

    fn member(&self, node: usize) -> Member {
        let answer = match self.nodes[node].process {
            Some(place) if !self.nodes[node].is_sick => Answer::Reported(Box::new(self.report(node, place))),
            _ => Answer::Silent { reason: String::new() },
        };
        Member {
            id: id_of(node),
            name: Arc::default(),
            role: Role::Voter,
            client_urls: Vec::new(),
            reached: None,
            is_disputed: false,
            activities: Default::default(),
            answer,
        }
    }

    fn report(&self, node: usize, place: Place) -> Report {
        // A release from before there were downgrades says nothing of them.
        let is_asked = self.scenario.leads_down() && place == 0;
        let lower = self.scenario.version(1);
        let stored = if self.nodes[node].is_fit { lower } else { self.scenario.version(0) };
        let health = if self.has_quorum() { Health::Ready } else { Health::Sick { reason: String::new() } };
        Report {
            release: self.scenario.release(place),
            cluster_version: Some(self.version),
            storage_version: is_asked.then_some(stored),
            downgrade: (is_asked && self.is_going_down).then_some(lower),
            leader: None,
            term: Term(1),
            log_index: LogIndex(0),
            applied: LogIndex(0),
            revision: Revision(0),
            db_bytes: 0,
            quota_bytes: None,
            health,
            gates: None,
            join: None,
        }
    }

    // ---- the end ----

    /// Everything done, nothing left behind, nobody at work.
    pub fn is_over(&self) -> bool {
        let is_idle =
            self.late.is_empty() && self.late_calls == 0 && self.hosts.iter().all(|host| host.process.is_none());
        let is_clean = self.keys.step.is_none() && self.keys.abandoned.is_empty() && self.keys.baton.is_none();
        if !is_idle || !is_clean || !self.is_guarding_over() {
            return false;
        }
        if !self.scenario.has_run {
            return self.left.guard == 0 && self.all_run(0);
        }
        let Some(run) = self.keys.run.as_ref().map(|run| &run.value) else { return false };
        let RunState::Done { result } = &run.state else { return false };
        let wanted = match result {
            RunResult::Reached => self.scenario.last(),
            RunResult::RolledBack => self.hop_of(run),
        };
        let was_asked_for = *result == RunResult::Reached || self.scenario.faults.rollback > 0;
        was_asked_for && !self.is_going_down && self.all_run(wanted)
    }
}

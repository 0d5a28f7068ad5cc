//! The world around the machines: a store, members, clocks and faults, as one value.
//!
//! The store evaluates the shipped Txns; members are a symlink, a process and a health; the leader raises
//! the cluster version some time after every member was seen on the new release at once.

use std::sync::Arc;

use agent::{
    journal::progress::{Binary, InHand},
    observe::view::{Answer, ClusterView, Health, Leader, Member, Report, Role},
    plan::Verb,
    rollout::{
        act::Act,
        agent::Agent,
        host_id::HostId,
        keys::{At, Finalize, KeyName, Keys, ProcessId, RunResult, RunState},
        symmetry::{Names, Renamed},
        txn::{Is, Op, Txn},
    },
};
use proto::{ClusterId, ClusterVersion, LogIndex, MemberId, Release, Revision, Term};

use super::{faults::Faults, scenario::Scenario};

/// Everything there is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub keys: Keys,
    /// Txns whose sender got no answer and that may still be done.
    pub late: Vec<Txn>,
    pub nodes: Vec<Node>,
    pub hosts: Vec<Host>,
    pub leader: usize,
    /// The cluster version is the target's.
    pub risen: bool,
    /// Every member was seen on the new release at once, so the leader may raise the version.
    pub rise_pending: bool,
    /// A step of this member failed and nobody with a right to has lifted the mark: no matter what the keys say.
    pub marked: Option<usize>,
    pub faults: Faults,
    /// The playbook says `finalize: manual`.
    pub holds: bool,
    /// How many revisions and ids this world remembers: the next is one more.
    pub remembered: (i64, u128),
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// Where the symlink points.
    pub binary: Binary,
    /// What runs.
    pub process: Option<Binary>,
    pub is_sick: bool,
    /// Down, or not yet ready again, because an agent stopped it.
    pub by_our_hand: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Host {
    /// The state directory's id changes when the directory is lost.
    pub instance: u128,
    pub journal: Option<InHand>,
    pub process: Option<Process>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Process {
    pub id: ProcessId,
    pub agent: Agent,
    pub act: Act,
    /// The keys that a look has read, while it has not asked the members yet.
    pub read: Option<Option<Keys>>,
    /// The lease has lapsed while the process was frozen.
    pub has_lapsed: bool,
    /// What its last look showed.
    pub saw: Saw,
    pub is_registered: bool,
    pub verb: Verb,
}

/// What the last look showed, for judging a stop.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Saw {
    pub another_is_down: bool,
    pub leads: bool,
    pub a_mark: bool,
}

pub const OLD: Release = release(4);
pub const NEW: Release = release(5);
const fn release(minor: u64) -> Release {
    Release(semver::Version::new(3, minor, 0))
}

pub fn version(is_new: bool) -> ClusterVersion {
    ClusterVersion { major: 3, minor: if is_new { 5 } else { 4 } }
}

pub fn id_of(node: usize) -> MemberId {
    MemberId(node as u64 + 1)
}

pub fn node_of(id: MemberId) -> usize {
    id.0 as usize - 1
}

impl Node {
    pub fn is_up(&self) -> bool {
        self.process.is_some() && !self.is_sick
    }
}

impl World {
    pub fn new(scenario: &Scenario) -> Self {
        let node = Node { binary: Binary::Old, process: Some(Binary::Old), is_sick: false, by_our_hand: false };
        let host = |n: usize| Host { instance: n as u128, journal: None, process: None };
        Self {
            keys: Keys::default(),
            late: Vec::new(),
            nodes: vec![node; scenario.members],
            hosts: (0..scenario.members).map(host).collect(),
            leader: 0,
            risen: false,
            rise_pending: false,
            marked: None,
            faults: scenario.faults.clone(),
            holds: scenario.finalize == Finalize::Manual,
            remembered: (0, 0),
        }
    }

    pub fn host_id(&self, host: usize) -> HostId {
        HostId { machine: Some(host as u128 + 1), instance: self.hosts[host].instance }
    }

    pub fn has_quorum(&self) -> bool {
        self.nodes.iter().filter(|node| node.is_up()).count() > self.nodes.len() / 2
    }

    pub fn is_ready(&self, node: usize) -> bool {
        self.nodes[node].is_up() && self.has_quorum()
    }

    /// What follows by itself: an election, and what polls have seen.
    pub fn settle(&mut self) {
        if !self.nodes[self.leader].is_up() {
            self.leader = self.nodes.iter().position(Node::is_up).unwrap_or(self.leader);
        }
        if !self.risen && self.all_run(Binary::New) && self.has_quorum() {
            self.rise_pending = true;
        }
    }

    pub fn all_run(&self, binary: Binary) -> bool {
        self.nodes.iter().all(|node| node.process == Some(binary) && !node.is_sick)
    }

    pub fn view(&self) -> ClusterView {
        let leader = match self.has_quorum() {
            true => Leader::Agreed { member: id_of(self.leader), term: Term(1) },
            false => Leader::Unknown,
        };
        let members = (0..self.nodes.len()).map(|node| self.member(node)).collect();
        ClusterView { cluster: ClusterId(1), leader, members }
    }

    fn member(&self, node: usize) -> Member {
        let answer = match self.nodes[node].process {
            Some(binary) if !self.nodes[node].is_sick => Answer::Reported(Box::new(self.report(binary))),
            _ => Answer::Silent { reason: String::new() },
        };
        Member { id: id_of(node), name: Arc::from(""), role: Role::Voter, client_urls: Vec::new(), answer }
    }

    fn report(&self, binary: Binary) -> Report {
        let health = if self.has_quorum() { Health::Ready } else { Health::Sick { reason: String::new() } };
        Report {
            release: if binary == Binary::New { NEW } else { OLD },
            cluster_version: Some(version(self.risen)),
            storage_version: None,
            leader: None,
            term: Term(1),
            log_index: LogIndex(0),
            applied: LogIndex(0),
            revision: Revision(0),
            db_bytes: 0,
            health,
            gates: None,
        }
    }

    // ---- the store ----

    /// Evaluates a Txn as etcd does.
    pub fn commit(&mut self, txn: &Txn) -> Result<Revision, ()> {
        if !txn.compares.iter().all(|compare| self.holds(compare.key, compare.is)) {
            return Err(());
        }
        self.remembered.0 += 1;
        let revision = Revision(self.remembered.0);
        txn.ops.iter().for_each(|op| self.write(op, revision));
        Ok(revision)
    }

    fn stamp(&self, key: KeyName) -> Option<(Revision, Revision)> {
        fn of<T>(at: &At<T>) -> (Revision, Revision) {
            (at.created, at.modified)
        }
        match key {
            KeyName::Run => self.keys.run.as_ref().map(of),
            KeyName::Agent(host) => self.keys.agents.get(&host).map(of),
            KeyName::Baton => self.keys.baton.as_ref().map(of),
            KeyName::Down => self.keys.down.as_ref().map(of),
            KeyName::Lost(member) => self.keys.lost.get(&member).map(of),
        }
    }

    fn holds(&self, key: KeyName, is: Is) -> bool {
        match (self.stamp(key), is) {
            (None, Is::Absent) => true,
            (Some((created, _)), Is::Created(revision)) => created == revision,
            (Some((_, modified)), Is::Modified(revision)) => modified == revision,
            _ => false,
        }
    }

    fn write(&mut self, op: &Op, modified: Revision) {
        let created = |stamp: Option<(Revision, Revision)>| stamp.map_or(modified, |(created, _)| created);
        match op {
            Op::PutRun(run) => {
                let created = created(self.stamp(KeyName::Run));
                self.keys.run = Some(At { created, modified, value: run.clone() });
            }
            Op::PutAgent(host, participant) => {
                // Nothing compares when an agent registered.
                let at = At { created: Revision(0), modified: Revision(0), value: participant.clone() };
                self.keys.agents.insert(*host, at);
            }
            Op::PutBaton(baton) => {
                let created = created(self.stamp(KeyName::Baton));
                self.keys.baton = Some(At { created, modified, value: baton.clone() });
            }
            Op::PutDown(record) => {
                let created = created(self.stamp(KeyName::Down));
                self.keys.down = Some(At { created, modified, value: record.clone() });
            }
            Op::PutLost(record) => {
                let created = created(self.stamp(KeyName::Lost(record.member)));
                self.keys.lost.insert(record.member, At { created, modified, value: record.clone() });
            }
            Op::Delete(KeyName::Run) => self.keys.run = None,
            Op::Delete(KeyName::Baton) => self.keys.baton = None,
            Op::Delete(KeyName::Down) => self.keys.down = None,
            Op::Delete(KeyName::Agent(host)) => drop(self.keys.agents.remove(host)),
            Op::Delete(KeyName::Lost(member)) => drop(self.keys.lost.remove(member)),
        }
    }

    // ---- the end ----

    /// Everything done, nothing left behind, nobody at work.
    pub fn is_over(&self, scenario: &Scenario) -> bool {
        let result = match self.keys.run.as_ref().map(|run| &run.value.state) {
            Some(RunState::Done { result }) => *result,
            _ => return false,
        };
        let wanted = match result {
            RunResult::Reached => Binary::New,
            RunResult::RolledBack => Binary::Old,
        };
        let is_idle = self.hosts.iter().all(|host| host.process.is_none());
        let is_clean = self.keys.down.is_none() && self.keys.lost.is_empty() && self.keys.baton.is_none();
        let reached = result == RunResult::Reached || scenario.faults.rollback > 0;
        is_idle && is_clean && reached && self.all_run(wanted) && self.late.is_empty()
    }

    /// Whether taking this member forward would break the hold.
    pub fn is_unapproved_last(&self, node: usize) -> bool {
        let others_are_new =
            self.nodes.iter().enumerate().all(|(other, n)| other == node || n.process == Some(Binary::New));
        self.holds && others_are_new && !self.faults.approved
    }

    // ---- one state for all that differ only in numbers ----

    pub fn canonical(mut self) -> Self {
        self.late.sort_by_key(|txn| format!("{txn:?}"));
        let mut numbered = Numbered::default();
        self.rename(&mut numbered);
        self.remembered = (numbered.revisions.len() as i64, numbered.ids.len() as u128);
        self
    }

    /// An id that nothing in this world remembers.
    pub fn fresh(&mut self) -> u128 {
        self.remembered.1 += 1;
        self.remembered.1
    }

    fn rename(&mut self, names: &mut dyn Names) {
        self.keys.rename(names);
        self.late.iter_mut().for_each(|txn| txn.rename(names));
        for host in &mut self.hosts {
            host.journal.iter_mut().for_each(|in_hand| in_hand.rename(names));
            let Some(process) = &mut host.process else { continue };
            process.agent.rename(names);
            process.read.iter_mut().flatten().for_each(|keys| keys.rename(names));
            match &mut process.act {
                Act::Send(txn) => txn.rename(names),
                Act::GiveBack(take) => names.id(&mut take.0),
                Act::Journal(entry) => entry.rename(names),
                _ => {}
            }
        }
    }
}

/// Numbers in the order in which they are met: only which are equal is kept.
#[derive(Default)]
struct Numbered {
    revisions: Vec<Revision>,
    ids: Vec<u128>,
}

fn number<T: Copy + PartialEq>(met: &mut Vec<T>, one: T) -> usize {
    match met.iter().position(|other| *other == one) {
        Some(at) => at + 1,
        None => {
            met.push(one);
            met.len()
        }
    }
}

impl Names for Numbered {
    fn revision(&mut self, revision: &mut Revision) {
        if *revision != Revision(0) {
            *revision = Revision(number(&mut self.revisions, *revision) as i64);
        }
    }
    fn id(&mut self, id: &mut u128) {
        *id = number(&mut self.ids, *id) as u128;
    }
}

//! Members of different releases apply one log, each by what its own release knows of features; after every entry they must be the
//! same, however the log is cut into batches, whatever is late, lost or doubled, whoever comes, goes or is restarted on another
//! release, and wherever in the log each was stopped when the cluster was put at a lower version offline (K-01).

#[path = "releases_test/clients.rs"]
mod clients;
#[path = "releases_test/events.rs"]
mod events;
#[path = "releases_test/process.rs"]
mod process;

use std::collections::{BTreeMap, BTreeSet};

use consensus::{Content, Machine as _, Members};
use proto::{ClusterId, ClusterVersion, LeaseId, MemberId};

use super::*;
use crate::{
    cluster::{
        Cluster,
        downgrade::LOWEST,
        entry::Entry as ClusterEntry,
        gate::Gate,
        leader_proposals::{Heard, Own, of_leader, of_member},
        member::{Member, Starts},
        membership::{Change, Rules},
    },
    entry::{Entry, EntryKind},
    features::{COMPRESSION, COUNTERS, LEASE_CHECKPOINT, Overrides},
    migrate::tail,
    state::{ProposalId, Restore, StateError},
};
use clients::{must_be_on, must_be_refused, must_write, newest, newest_release};
use process::Process;

const RELEASES: [&str; 6] = ["3.5.0", "3.6.0", "3.6.1", "3.7.0", "3.8.0", "3.9.0"];
const SEEDS: u64 = 300;
const NAMES: [&str; 4] = [LEASE_CHECKPOINT, COMPRESSION, COUNTERS, "NobodyKnowsIt"];

/// Numbers that look like chance, the same for one seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

/// What all must have after an entry.
struct Mark {
    stored: Vec<u8>,
    on: [bool; 4],
    version: Option<ClusterVersion>,
}

/// How often what is to be tried came to pass.
#[derive(Debug, Default)]
struct Seen {
    on: usize,
    refused: usize,
    written: usize,
    checkpointed: usize,
    batches: usize,
    fallen: usize,
    lowered: usize,
    lowered_behind: usize,
    stopped: usize,
    versions: BTreeSet<Option<ClusterVersion>>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.on += other.on;
        self.refused += other.refused;
        self.written += other.written;
        self.checkpointed += other.checkpointed;
        self.batches += other.batches;
        self.fallen += other.fallen;
        self.lowered += other.lowered;
        self.lowered_behind += other.lowered_behind;
        self.stopped += other.stopped;
        self.versions.extend(other.versions);
    }
}

/// One log, and who applies it.
struct World {
    chance: Chance,
    /// No member: it runs the newest release, and applies each entry by itself.
    first: Process,
    processes: BTreeMap<u64, Process>,
    voters: BTreeSet<u64>,
    /// Who stands still, and applies nothing for now.
    still: Option<u64>,
    log: Vec<Content>,
    /// After each entry.
    marks: Vec<Mark>,
    /// What may come once more, or late.
    late: Vec<Entry>,
    next_id: u64,
    seen: Seen,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let release = RELEASES[chance.below(3) + 1];
        let process = |id| (id, Process::of(id, release, 1, Overrides::default()));
        let first = Process::of(99, "3.9.0", 1, Overrides::default());
        let marks = vec![Mark { stored: first.stored(), on: first.on(), version: None }];
        let (processes, voters) = ((1..=3).map(process).collect(), [1, 2, 3].into());
        let (log, late, next_id, seen) = (Vec::new(), Vec::new(), 4, Seen::default());
        let mut world = Self { chance, first, processes, voters, still: None, log, marks, late, next_id, seen };
        let members = (1..=3).map(|id| (MemberId(id), (format!("m{id}"), vec![format!("http://p{id}")]))).collect();
        world.append(EntryKind::Cluster(ClusterEntry::Bootstrap { id: ClusterId(7), members }).into());
        world
    }

    fn append(&mut self, entry: Entry) {
        let number = self.log.len() as u64 + 1;
        let id = ProposalId { member: MemberId(1), starts: Starts(1), number };
        let proposal = super::Proposal { id, settled: number, entry: entry.encode().into() };
        let before = self.first.machine.frozen();
        self.commit(Content::Command(proposal.encode().into()));
        let after = self.first.machine.frozen();
        let expected = State { applied: after.applied, sessions: after.sessions.clone(), ..before.clone() };
        if must_be_refused(&before.cluster, &entry) {
            assert!(after == expected, "{entry:?} has changed something where it must be refused");
            self.seen.refused += 1;
        } else if must_write(&entry) {
            assert_eq!(after.keys.revision().0, before.keys.revision().0 + 1, "{entry:?} must be taken");
            self.seen.written += 1;
        }
    }

    /// One more entry; some apply it at once.
    fn commit(&mut self, content: Content) {
        let before = self.first.cluster();
        self.log.push(content.clone());
        self.first.machine.apply(&[(self.log.len() as u64, content)]).unwrap();
        self.seen.fallen += usize::from(self.first.version() < before.version);
        self.mark(&before);
        for id in self.processes.keys().copied().collect::<Vec<_>>() {
            if self.still != Some(id) && !self.chance.one_in(4) {
                self.catch_up(id);
            }
        }
    }

    fn mark(&mut self, before: &Cluster) {
        let (stored, on, version) = (self.first.stored(), self.first.on(), self.first.version());
        self.seen.versions.insert(version);
        self.seen.on += usize::from(on[..3].contains(&true));
        self.check(before, on);
        self.marks.push(Mark { stored, on, version });
    }

    fn check(&mut self, before: &Cluster, on: [bool; 4]) {
        let state = self.first.machine.frozen();
        let cluster = &state.cluster;
        let expected = NAMES.map(|name| must_be_on(cluster, name));
        assert_eq!(on, expected, "of {NAMES:?}: {cluster:?}");
        let checkpointed = [1, 2].map(|id| state.keys.leases().get(LeaseId(id)).map_or(0, |l| l.checkpointed_s()));
        let has_any = checkpointed != [0, 0];
        assert!(expected[0] || !has_any, "{LEASE_CHECKPOINT} is off, and counts");
        self.seen.checkpointed += usize::from(has_any);
        let (Gate::Decided(_), Some(version)) = (&cluster.gate, cluster.version) else { return };
        for (name, _) in NAMES.into_iter().zip(on).filter(|(_, on)| *on) {
            let said = |(_, member): (MemberId, &Member)| member.proposed_at(version).and_then(|wants| wants.get(name));
            let (mut know, mut want) = (cluster.voters().map(said), cluster.voters().map(said));
            let is_locked = newest().locked(name, version).is_some();
            assert!(
                is_locked || know.all(|said| said.is_some()),
                "{name} is on, and a voter does not know it: {cluster:?}"
            );
            // A decision rules until the next one: what a voter has taken back is on until then.
            let is_old = cluster.gate == before.gate || is_locked;
            assert!(is_old || want.all(|said| said == Some(true)), "{name} is decided to be on: {cluster:?}");
        }
    }

    /// Applies what it has not applied yet, in batches.
    fn catch_up(&mut self, id: u64) {
        while let Some(process) = self.processes.get_mut(&id).filter(|process| process.at < self.log.len()) {
            let to = process.at + 1 + self.chance.below(self.log.len() - process.at);
            let batch: Vec<_> = (process.at..to).map(|at| (at as u64 + 1, self.log[at].clone())).collect();
            let is_above =
                |mark: &Mark| mark.version.is_some_and(|version| version > process.release.cluster_version());
            let must_stop = self.marks[process.at + 1..=to].iter().any(is_above);
            let outcome = process.machine.apply(&batch);
            assert_eq!(outcome.is_err(), must_stop, "{id} of {} at {to}: {:?}", process.release, outcome.err());
            if must_stop {
                self.seen.stopped += 1;
                self.restart_stopped(id);
                continue;
            }
            self.seen.batches += usize::from(batch.len() > 1);
            self.compare(id, to);
        }
    }

    fn compare(&mut self, id: u64, at: usize) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        process.at = at;
        let mark = &self.marks[at];
        let is_same = process.stored() == mark.stored;
        assert!(
            is_same,
            "after entry {at}: {id} of {} has another state stored: {:?}",
            process.release,
            process.cluster()
        );
        assert_eq!(process.on(), mark.on, "after entry {at}: {id} of {} answers otherwise", process.release);
    }

    /// Whom a leader hears: mostly all, now and then not this one.
    fn heard(&self, silent: Option<u64>) -> BTreeMap<MemberId, Heard> {
        let heard = |process: &Process| {
            (process.own.id, Heard { release: process.release.clone(), starts: process.own.starts })
        };
        self.processes.iter().filter(|(id, _)| Some(**id) != silent).map(|(_, process)| heard(process)).collect()
    }

    /// Who leads has applied all; the others speak as of where they are.
    fn due(&self, silent: Option<u64>) -> Vec<Entry> {
        let of_one = |process: &Process| of_member(&process.cluster(), &process.own, process.machine.registry());
        let leads = of_leader(&self.first.cluster(), &self.heard(silent)).into_iter();
        let due = leads.chain(self.processes.values().filter_map(of_one));
        due.map(|entry| EntryKind::Cluster(entry).into()).collect()
    }

    fn one(&mut self) -> u64 {
        let ids: Vec<u64> = self.processes.keys().copied().collect();
        ids[self.chance.below(ids.len())]
    }

    fn step(&mut self) {
        match self.chance.below(15) {
            0 => self.restart(),
            1 => self.change_members(),
            2..6 => {
                let revision = self.first.machine.read(|state| state.keys.revision().0);
                let entry = self.chance.write(revision);
                self.append(entry);
            }
            6 => {
                let version = self.first.version().unwrap_or(LOWEST);
                let to = ClusterVersion { minor: version.minor - 1, ..version };
                let to = Some(to).filter(|_| self.chance.one_in(2));
                self.append(EntryKind::Cluster(ClusterEntry::Downgrade { to }).into());
            }
            7 if self.chance.one_in(4) => self.lower(),
            8 if !self.late.is_empty() => {
                let at = self.chance.below(self.late.len());
                let entry = self.late[at].clone();
                self.append(entry);
            }
            9 if self.chance.one_in(2) => {
                self.still = self.still.is_none().then(|| self.one());
            }
            _ => {
                let silent = self.chance.one_in(4).then(|| self.one());
                let due = self.due(silent);
                if due.is_empty() {
                    return;
                }
                let entry = due[self.chance.below(due.len())].clone();
                self.late.push(entry.clone());
                if !self.chance.one_in(5) {
                    self.append(entry);
                }
            }
        }
    }

    /// Nothing changes any more: it comes to rest.
    fn settle(&mut self) {
        for _ in 0..200 {
            self.processes.keys().copied().collect::<Vec<_>>().into_iter().for_each(|id| self.catch_up(id));
            let Some(entry) = self.due(None).into_iter().next() else {
                let cluster = self.first.cluster();
                let undecided = cluster.has_gates() && cluster.gate == Gate::Undecided;
                return assert!(!undecided, "nothing is due, and nothing is decided: {cluster:?}");
            };
            self.append(entry);
        }
        panic!("no end: {:?}", self.due(None));
    }
}

#[test]
fn releases_that_know_different_features_are_the_same_after_every_entry() {
    let mut all = Seen::default();
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        (0..200).for_each(|_| world.step());
        world.settle();
        all.add(world.seen);
    }
    let Seen { on, refused, written, checkpointed, batches, fallen, lowered, lowered_behind, stopped, versions } = &all;
    let counts = [on, refused, written, checkpointed, batches, fallen, lowered, lowered_behind, stopped];
    assert!(counts.iter().all(|count| **count > 5) && versions.len() == 6, "too little was seen: {all:?}");
    println!("counted: {SEEDS} logs of 200 steps: {all:?}");
}

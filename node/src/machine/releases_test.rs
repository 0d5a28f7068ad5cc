//! Members of different releases apply one log, each by what its own release knows of features; after every entry they must be the
//! same, whatever is late, lost or doubled, and whoever comes, goes or is restarted on another release (K-01).

use std::collections::{BTreeMap, BTreeSet};

use consensus::{Content, Machine as _, Members};
use proto::{
    ClusterId, ClusterVersion, MemberId,
    batonpb::AddRequest,
    etcdserverpb::{LeaseCheckpoint, LeaseCheckpointRequest, LeaseGrantRequest, PutRequest},
};

use super::*;
use crate::{
    cluster::{
        Cluster,
        entry::Entry as ClusterEntry,
        gate::Gate,
        leader_proposals::{Heard, Own, of_leader, of_member},
        member::Starts,
    },
    entry::{Entry, EntryKind},
    features::{COMPRESSION, COUNTERS, LEASE_CHECKPOINT, Overrides},
    state::{ProposalId, Restore, StateError},
};

const RELEASES: [&str; 6] = ["3.5.0", "3.6.0", "3.6.1", "3.7.0", "3.8.0", "3.9.0"];
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

struct Process {
    release: Release,
    machine: Machine,
    own: Own,
}

impl Process {
    fn of(id: u64, release: &str, starts: u64, overrides: Overrides) -> Self {
        let release: Release = release.parse().unwrap();
        let own = Own {
            id: MemberId(id),
            starts: Starts(starts),
            start_id: None,
            incarnation: None,
            name: format!("m{id}"),
            client_urls: vec![format!("http://{id}")],
            overrides,
        };
        let proposals = Proposals::new(own.id, own.starts);
        Self { machine: Machine::new(release.clone(), Registry::of(&release), proposals), release, own }
    }

    /// The state as it is stored here.
    fn stored(&self) -> Vec<u8> {
        let state = self.machine.frozen();
        state.snapshot(state.form(self.machine.registry())).flatten().collect()
    }

    fn load(&self, stored: &[u8]) -> Result<(), StateError> {
        let mut restore = Restore::by(&self.release);
        restore.push(stored)?;
        *self.machine.write() = restore.finish()?;
        Ok(())
    }
}

/// One log, and who applies it.
struct World {
    chance: Chance,
    processes: BTreeMap<u64, Process>,
    voters: BTreeSet<u64>,
    index: u64,
    /// What may come once more, or late.
    late: Vec<Entry>,
    next_id: u64,
    flips: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let first = chance.below(3) + 1;
        let process = |id| (id, Process::of(id, RELEASES[first], 1, Overrides::default()));
        let processes = (1..=3).map(process).collect();
        let mut world =
            Self { chance, processes, voters: [1, 2, 3].into(), index: 0, late: Vec::new(), next_id: 4, flips: 0 };
        let members = (1..=3).map(|id| (MemberId(id), (format!("m{id}"), vec![format!("http://p{id}")]))).collect();
        world.append(EntryKind::Cluster(ClusterEntry::Bootstrap { id: ClusterId(7), members }).into());
        world
    }

    fn cluster(&self) -> Cluster {
        self.processes.values().next().unwrap().machine.frozen().cluster
    }

    fn append(&mut self, entry: Entry) {
        let id = ProposalId { member: MemberId(1), starts: Starts(1), number: self.index + 1 };
        let proposal = super::Proposal { id, settled: self.index + 1, entry: entry.encode().into() };
        self.apply(Content::Command(proposal.encode().into()));
    }

    fn apply(&mut self, content: Content) {
        self.index += 1;
        for (id, process) in &self.processes {
            if let Err(stop) = process.machine.apply(&[(self.index, content.clone())]) {
                panic!("member {id} of {} stops at {}: {stop}", process.release, self.index);
            }
        }
        self.check();
    }

    fn check(&mut self) {
        let mut processes = self.processes.values();
        let first = processes.next().unwrap().machine.frozen();
        let is_on = |process: &Process| {
            let registry = process.machine.registry();
            NAMES.map(|name| process.machine.read(|state| state.cluster.is_enabled(name, registry)))
        };
        let on = self.processes.values().next().map(is_on).unwrap();
        for process in self.processes.values() {
            let Process { machine, release, own } = process;
            assert!(machine.frozen() == first, "index {}: {} of {release} differs", self.index, own.id);
            assert_eq!(is_on(process), on, "index {}: {} of {release}", self.index, own.id);
        }
        let cluster = &first.cluster;
        let Some(version) = cluster.version else { return assert_eq!(on, [false; 4], "nothing before the version") };
        let registry = Registry::of(&"3.9.0".parse().unwrap());
        for (name, on) in NAMES.into_iter().zip(on) {
            let all_want = cluster.voters().all(|(_, member)| {
                member.proposed_at(version).is_some_and(|proposed| proposed.get(name) == Some(true))
            });
            let is_locked = registry.locked(name, version) == Some(true);
            let is_old = matches!(&cluster.gate, Gate::Decided(_)) && cluster.inputs.0 == self.index;
            // A decision rules until the next one: what a voter has just taken back is on until then.
            assert!(!on || all_want || is_locked || is_old || self.is_waiting(cluster), "{name} is on at {version}");
        }
        self.flips += usize::from(on[..3].contains(&true));
    }

    /// Whether a decision is due: what is on may be from before.
    fn is_waiting(&self, cluster: &Cluster) -> bool {
        of_leader(cluster, &self.heard()).is_some()
    }

    fn heard(&self) -> BTreeMap<MemberId, Heard> {
        let heard = |process: &Process| {
            (process.own.id, Heard { release: process.release.clone(), starts: process.own.starts })
        };
        self.processes.values().map(heard).collect()
    }

    fn due(&self) -> Vec<Entry> {
        let cluster = self.cluster();
        let of_one = |process: &Process| of_member(&cluster, &process.own, process.machine.registry());
        let due = of_leader(&cluster, &self.heard()).into_iter().chain(self.processes.values().filter_map(of_one));
        due.map(|entry| EntryKind::Cluster(entry).into()).collect()
    }

    fn client(&mut self) -> Entry {
        let key = format!("k{}", self.chance.below(3)).into_bytes();
        let value = vec![b'v'; self.chance.below(2) * 5_000 + 1];
        let what = match self.chance.below(4) {
            0 => EntryKind::CounterAdd(AddRequest { key: b"n".to_vec(), by: 3 }),
            1 => EntryKind::LeaseGrant(LeaseGrantRequest { id: 1 + self.chance.below(2) as i64, ttl: 60 }),
            2 => {
                let checkpoints = vec![LeaseCheckpoint { id: 1, remaining_ttl: 1 + self.chance.below(50) as i64 }];
                EntryKind::LeaseCheckpoint(LeaseCheckpointRequest { checkpoints })
            }
            _ => EntryKind::Put(PutRequest { key, value, ..PutRequest::default() }),
        };
        let requires = self.chance.one_in(4).then(|| NAMES[self.chance.below(4)].to_owned());
        Entry { requires: requires.into_iter().collect(), what }
    }

    /// Whoever runs it next: another release where it can be, another flag.
    fn restart(&mut self) {
        let ids: Vec<u64> = self.processes.keys().copied().collect();
        let id = ids[self.chance.below(ids.len())];
        let old = &self.processes[&id];
        let (stored, starts) = (old.stored(), old.own.starts.0 + 1);
        let now = RELEASES.iter().position(|release| old.release == release.parse().unwrap()).unwrap();
        let to = RELEASES[(now + self.chance.below(3)).saturating_sub(1).min(RELEASES.len() - 1)];
        let overrides = match self.chance.below(3) {
            0 => Overrides::default(),
            flag => Overrides([(NAMES[self.chance.below(3)].to_owned(), flag == 1)].into()),
        };
        let new = Process::of(id, to, starts, overrides);
        let is_fit = self.cluster().version.is_none_or(|version| version <= new.release.cluster_version());
        match new.load(&stored) {
            Ok(()) => assert!(is_fit, "{to} reads what is stored for a higher version"),
            Err(StateError::Storage { .. }) => return assert!(!is_fit, "{to} does not read what it can"),
            Err(error) => panic!("{error}"),
        }
        assert!(new.machine.frozen() == self.processes[&id].machine.frozen(), "stored and read, it is another state");
        self.processes.insert(id, new);
    }

    fn change_members(&mut self) {
        let (count, learners) = (self.processes.len(), self.processes.len() - self.voters.len());
        match self.chance.below(3) {
            0 if count < 5 && learners == 0 => {
                let (id, votes) = (self.next_id, self.chance.one_in(2));
                self.next_id += 1;
                let release = RELEASES[self.chance.below(RELEASES.len())];
                let new = Process::of(id, release, 1, Overrides::default());
                let some = self.processes.values().next().unwrap();
                if new.load(&some.stored()).is_err() {
                    return;
                }
                self.processes.insert(id, new);
                self.voters.extend(votes.then_some(id));
            }
            1 if learners > 0 => self.voters.extend(self.processes.keys()),
            2 if self.voters.len() > 1 => {
                let gone = *self.processes.keys().nth(self.chance.below(count)).unwrap();
                self.processes.remove(&gone);
                self.voters.remove(&gone);
                if self.voters.is_empty() {
                    self.voters.extend(self.processes.keys());
                }
            }
            _ => return,
        }
        let addresses = self.processes.keys().map(|id| (*id, format!("http://p{id}"))).collect();
        self.apply(Content::Members(Members { voters: self.voters.clone(), addresses }));
    }

    fn step(&mut self) {
        match self.chance.below(12) {
            0 => self.restart(),
            1 => self.change_members(),
            2 | 3 => {
                let entry = self.client();
                self.append(entry);
            }
            4 => {
                let version = self.cluster().version.unwrap_or(ClusterVersion { major: 3, minor: 5 });
                let to = ClusterVersion { minor: version.minor - 1, ..version };
                let to = Some(to).filter(|_| self.chance.one_in(2));
                self.append(EntryKind::Cluster(ClusterEntry::Downgrade { to }).into());
            }
            5 if !self.late.is_empty() => {
                let at = self.chance.below(self.late.len());
                let entry = self.late[at].clone();
                self.append(entry);
            }
            _ => {
                let due = self.due();
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
            let Some(entry) = self.due().into_iter().next() else {
                let cluster = self.cluster();
                let undecided = cluster.has_gates() && cluster.gate == Gate::Undecided;
                return assert!(!undecided, "nothing is due, and nothing is decided: {cluster:?}");
            };
            self.append(entry);
        }
        panic!("no end: {:?}", self.due());
    }
}

#[test]
fn releases_that_know_different_features_are_the_same_after_every_entry() {
    let (mut flips, mut versions) = (0, BTreeSet::new());
    for seed in 0..150 {
        let mut world = World::new(seed);
        for _ in 0..200 {
            world.step();
            versions.insert(world.cluster().version);
        }
        world.settle();
        flips += world.flips;
    }
    assert!(flips > 100 && versions.len() >= 5, "too little was seen: on {flips} times, at {versions:?}");
}

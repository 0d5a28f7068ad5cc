//! All interleavings of a few events over the real `apply`, breadth first: members of releases that know different features are restarted
//! with another release or flag, come, go and are promoted; what they and the leader propose comes late, twice or never
//! (KEP-4647, "Consensus Algorithm"). States that differ in nothing but numbers of entries are one.
//!
//! Each wrong rule that somebody might have written (`Wrong`) must be found.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use bytes::Bytes;
use proto::{ClusterId, ClusterVersion, LogIndex, MemberId, Release};

use crate::{
    cluster::{
        downgrade::LOWEST,
        entry::Entry as ClusterEntry,
        gate::Gate,
        leader_proposals::{Heard, Own, of_leader, of_member},
        member::Starts,
        membership::{Change, Membership, Rules},
    },
    entry::{Entry, EntryKind},
    features::{COMPRESSION, COUNTERS, Features, LEASE_CHECKPOINT, Overrides, Registry},
    state::{Restore, State},
};

const NAMES: [&str; 3] = [LEASE_CHECKPOINT, COMPRESSION, COUNTERS];

/// A rule that is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// A new version leaves the proposals.
    NoWipe,
    /// A decision counts, whatever has changed since it was made.
    InputsIgnored,
    /// The leader decides from proposals of any version.
    StaleAnd,
    /// It takes the default for who has not spoken,
    LeaderFillsGaps,
    /// counts learners,
    LearnerCounted,
    /// or goes by members that an entry names which is not applied yet.
    MembershipAhead,
    /// What the gate says comes before a lock.
    LockAfterMap,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    release: &'static str,
    starts: u64,
    /// What it says of counters.
    flag: Option<bool>,
}

impl Process {
    fn release(&self) -> Release {
        self.release.parse().unwrap()
    }

    fn registry(&self) -> Registry {
        Registry::of(&self.release())
    }

    fn overrides(&self) -> Overrides {
        Overrides(self.flag.map(|is_on| (COUNTERS.to_owned(), is_on)).into_iter().collect())
    }
}

/// Proposed, and not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pending {
    Cluster(ClusterEntry),
    Members(Membership),
}

/// How often each may happen.
#[derive(Clone, Copy, Debug)]
struct Left {
    restarts: u8,
    members: u8,
    downgrades: u8,
    doubles: u8,
}

#[derive(Clone, Debug)]
struct World {
    state: State,
    processes: BTreeMap<u64, Process>,
    pending: Vec<Pending>,
    left: Left,
    /// What each member has said last since the version is what it is, noted here and not by `apply`.
    said: BTreeMap<MemberId, Features>,
    wrong: Option<Wrong>,
}

/// What a search goes through.
struct Small {
    releases: &'static [&'static str],
    /// Whom one can be restarted with, and what a newcomer runs.
    others: &'static [&'static str],
    left: Left,
    /// Whether it begins where all is decided.
    is_settled: bool,
}

const fn left(restarts: u8, members: u8, downgrades: u8, doubles: u8) -> Left {
    Left { restarts, members, downgrades, doubles }
}

type Found<T> = Result<T, String>;

fn hold(condition: bool, what: impl FnOnce() -> String) -> Found<()> {
    if condition { Ok(()) } else { Err(what()) }
}

impl World {
    fn new(small: &Small, wrong: Option<Wrong>) -> Found<Self> {
        let process = |(id, release): (u64, &&'static str)| (id, Process { release, starts: 1, flag: None });
        let processes: BTreeMap<_, _> = (1..).zip(small.releases).map(process).collect();
        let founder = |id: &u64| (MemberId(*id), (format!("m{id}"), vec![format!("http://p{id}")]));
        let members = processes.keys().map(founder).collect();
        let (state, pending, said) = (State::default(), Vec::new(), BTreeMap::new());
        let mut world = Self { state, processes, pending, left: small.left, said, wrong };
        world.apply(Pending::Cluster(ClusterEntry::Bootstrap { id: ClusterId(7), members }))?;
        if small.is_settled { world.settled() } else { Ok(world) }
    }

    fn version(&self) -> Option<ClusterVersion> {
        self.state.cluster.version
    }

    /// One below the cluster's version has stopped at the entry that raised it.
    fn running(&self) -> impl Iterator<Item = (&u64, &Process)> {
        let version = self.version();
        self.processes.iter().filter(move |(_, p)| version.is_none_or(|v| v <= p.release().cluster_version()))
    }

    fn is_on(&self, state: &State, name: &str, registry: &Registry) -> bool {
        let said = state.cluster.gate.get(name).filter(|_| self.wrong == Some(Wrong::LockAfterMap));
        said.unwrap_or_else(|| state.cluster.is_enabled(name, registry))
    }

    /// One entry, by each release that runs: all must come to the same.
    fn apply(&mut self, pending: Pending) -> Found<()> {
        let index = LogIndex(self.state.applied.0 + 1);
        let before = self.state.clone();
        let registries: BTreeMap<_, _> = self.running().map(|(_, p)| (p.release, p.registry())).collect();
        let mut states = registries.iter().map(|(release, registry)| {
            let mut state = before.clone();
            self.apply_on(&mut state, index, &pending, registry, &release.parse().unwrap());
            (release, registry, state)
        });
        let Some((first, registry, state)) = states.next() else { return Ok(()) };
        let on = NAMES.map(|name| self.is_on(&state, name, registry));
        for (other, registry, another) in states {
            hold(state == another, || format!("{first} and {other} differ after {pending:?}"))?;
            let same = NAMES.map(|name| self.is_on(&another, name, registry)) == on;
            hold(same, || format!("{first} and {other} answer otherwise"))?;
        }
        drop(registries);
        self.state = state;
        self.note(&before, &pending);
        self.check(&before, on)
    }

    fn apply_on(&self, state: &mut State, index: LogIndex, pending: &Pending, registry: &Registry, release: &Release) {
        let entry = match pending {
            Pending::Members(to) => {
                state.follow(index, to, registry);
                state.applied = index;
                return;
            }
            Pending::Cluster(entry) => entry.clone(),
        };
        let entry = match entry {
            ClusterEntry::Decide { features, .. } if self.wrong == Some(Wrong::InputsIgnored) => {
                ClusterEntry::Decide { features, inputs: state.cluster.inputs }
            }
            entry => entry,
        };
        let members = state.cluster.members.clone();
        let bytes = Entry::from(EntryKind::Cluster(entry.clone())).encode();
        match Entry::decode(Bytes::from(bytes), release.cluster_version()) {
            Ok(read) => drop(state.apply(index, read, registry)),
            Err(_) => state.applied = index,
        }
        if self.wrong == Some(Wrong::NoWipe) && matches!(entry, ClusterEntry::SetVersion { .. }) {
            state.cluster.members = members;
        }
    }

    fn note(&mut self, before: &State, pending: &Pending) {
        if before.cluster.version != self.version() {
            self.said.clear();
        }
        if let Pending::Cluster(ClusterEntry::Publish { member, starts, attributes, .. }) = pending
            && let Some(proposal) = attributes.proposal.as_ref().filter(|p| Some(p.version) == self.version())
            && before.cluster.members.get(member).is_some_and(|known| *starts >= known.starts)
        {
            self.said.insert(*member, proposal.features.clone());
        }
        let members = &self.state.cluster.members;
        self.said.retain(|id, _| members.contains_key(id));
    }

    fn check(&self, before: &State, on: [bool; 3]) -> Found<()> {
        let cluster = &self.state.cluster;
        let newest = Registry::of(&"3.9.0".parse().unwrap());
        let locked = |name: &str| cluster.version.and_then(|version| newest.locked(name, version));
        for (name, is_on) in NAMES.into_iter().zip(on) {
            let is_locked_so = locked(name).is_none_or(|locked| locked == is_on);
            hold(is_locked_so, || format!("{name} is {is_on}, and locked to the contrary"))?;
        }
        let Gate::Decided(features) = &cluster.gate else {
            return hold(NAMES.iter().zip(on).all(|(name, on)| !on || locked(name).is_some()), || {
                "on, undecided".into()
            });
        };
        let said: Option<Vec<&Features>> = cluster.voters().map(|(id, _)| self.said.get(&id)).collect();
        let said = said.ok_or_else(|| format!("decided, and a voter has said nothing at {:?}", cluster.version))?;
        let is_new = before.cluster.gate != cluster.gate;
        for (name, is_on) in features.iter() {
            let all_know = said.iter().all(|said| said.get(name).is_some());
            let all_want = said.iter().all(|said| said.get(name) == Some(true));
            hold(!is_on || all_know, || format!("{name} is on, and a voter does not know it"))?;
            // What a voter has taken back is on until the next decision.
            hold(!is_on || all_want || !is_new, || format!("{name} is decided to be on, and not all voters want it"))?;
        }
        Ok(())
    }

    fn heard(&self) -> BTreeMap<MemberId, Heard> {
        let heard =
            |(id, p): (&u64, &Process)| (MemberId(*id), Heard { release: p.release(), starts: Starts(p.starts) });
        self.running().map(heard).collect()
    }

    /// What is proposed now, by the leader and by each member.
    fn due(&self) -> Vec<Pending> {
        let cluster = &self.state.cluster;
        let own = |(id, process): (&u64, &Process)| {
            let (name, client_urls) = (format!("m{id}"), vec![format!("http://{id}")]);
            let (start_id, incarnation) = (None, None);
            let (id, starts) = (MemberId(*id), Starts(process.starts));
            let own = Own { id, starts, start_id, incarnation, name, client_urls, overrides: process.overrides() };
            of_member(cluster, &own, &process.registry())
        };
        let members = self.running().filter_map(own);
        self.of_leader().into_iter().chain(members).map(Pending::Cluster).collect()
    }

    fn of_leader(&self) -> Option<ClusterEntry> {
        let cluster = &self.state.cluster;
        let mut seen = cluster.clone();
        let (version, heard) = (cluster.version.unwrap_or(LOWEST), self.heard());
        match self.wrong {
            Some(Wrong::LearnerCounted) => seen.members.values_mut().for_each(|member| member.is_learner = false),
            Some(Wrong::StaleAnd) => {
                let proposals = seen.members.values_mut().filter_map(|member| member.proposal.as_mut());
                proposals.for_each(|proposal| proposal.version = version);
            }
            Some(Wrong::LeaderFillsGaps) => {
                for (id, member) in &mut seen.members {
                    let registry = self
                        .processes
                        .get(&id.0)
                        .map_or_else(|| Registry::of(&"3.7.0".parse().unwrap()), Process::registry);
                    let features = registry.proposal(version, &Overrides::default());
                    member.proposal.get_or_insert(crate::cluster::member::Proposal { version, features });
                }
            }
            Some(Wrong::MembershipAhead) => {
                let to = self.pending.iter().find_map(|pending| match pending {
                    Pending::Members(to) => Some(to),
                    Pending::Cluster(_) => None,
                });
                let inputs = seen.inputs;
                to.map(|to| seen.follow(inputs, to));
            }
            _ => {}
        }
        of_leader(&seen, &heard)
    }
}

impl World {
    /// Nothing changes any more, and the leader goes on: what it comes to.
    fn settled(&self) -> Found<Self> {
        let mut world = self.clone();
        while let Some(pending) = world.pending.pop() {
            world.apply_or_drop(pending)?;
        }
        let version = world.version();
        for process in world.processes.values_mut() {
            // Whoever has stopped is started with a release that goes.
            if version.is_some_and(|version| version > process.release().cluster_version()) {
                (process.release, process.starts) = ("3.8.0", process.starts + 1);
            }
        }
        for _ in 0..60 {
            if let Some(entry) = world.due().into_iter().next() {
                world.apply(entry)?;
                continue;
            }
            let (cluster, version) = (&world.state.cluster, world.version());
            hold(version.is_some(), || "no version, and nothing is due".into())?;
            if !cluster.has_gates() {
                return hold(cluster.gate == Gate::Undecided, || "a gate below 3.6".into()).map(|()| world);
            }
            let voters = world.processes.iter().filter(|(id, _)| !cluster.members[&MemberId(**id)].is_learner);
            let wants = |(_, p): (&u64, &Process)| p.registry().proposal(version.unwrap_or(LOWEST), &p.overrides());
            let all: Vec<Features> = voters.map(wants).collect();
            let wanted = all.iter().flat_map(Features::names);
            let is_on = |name: &str| all.iter().all(|wants| wants.get(name) == Some(true));
            let wanted = Gate::Decided(wanted.map(|name| (name.to_owned(), is_on(name))).collect());
            return hold(cluster.gate == wanted, || format!("it rests at {:?}, not at {wanted:?}", cluster.gate))
                .map(|()| world);
        }
        Err("it comes to no rest".into())
    }

    /// What is stored for the cluster's version every release that can have it writes alike, and reads whole.
    fn stored(&self) -> Found<()> {
        let mut forms = BTreeSet::new();
        for (_, process) in self.running() {
            let form = self.state.form(&process.registry());
            forms.insert((form.storage, form.compresses));
            let mut restore = Restore::by(&process.release());
            for piece in self.state.snapshot(form) {
                restore.push(&piece).map_err(|error| error.to_string())?;
            }
            let read = restore.finish().map_err(|error| error.to_string())?;
            hold(read == self.state, || "stored and read, it is another state".into())?;
        }
        hold(forms.len() == 1, || format!("two releases store one state in two forms: {forms:?}"))
    }

    /// Who was started before its cluster rose is stopped; an entry of a member that is gone says nothing.
    fn apply_or_drop(&mut self, pending: Pending) -> Found<()> {
        if let Pending::Members(to) = &pending {
            let voters: BTreeSet<_> = self.state.cluster.voters().map(|(id, _)| id).collect();
            let moved = voters.symmetric_difference(&to.voters).count();
            hold(moved <= 1, || format!("{voters:?} and {:?} may have quorums that do not meet", to.voters))?;
            self.processes.retain(|id, _| to.peer_urls.contains_key(&MemberId(*id)));
        }
        self.apply(pending)
    }

    fn change(&self, change: &Change) -> Option<Self> {
        if self.pending.iter().any(|pending| matches!(pending, Pending::Members(_))) {
            return None;
        }
        let rules = Rules { is_strict: false, max_learners: 1, registry: Registry::of(&"3.8.0".parse().unwrap()) };
        let lags = self.processes.keys().map(|id| (MemberId(*id), 0)).collect();
        let to = self.state.cluster.changed(change, rules, &lags).ok()?;
        let mut next = self.clone();
        next.left.members = self.left.members.checked_sub(1)?;
        next.pending.push(Pending::Members(to));
        Some(next)
    }

    /// Everything that may happen now.
    fn next(&self, small: &Small) -> Found<Vec<Self>> {
        let mut all = Vec::new();
        for at in 0..self.pending.len() {
            let mut next = self.clone();
            let entry = next.pending.remove(at);
            let is_list = matches!(entry, Pending::Members(_));
            // Lost; a list of members never is: whoever leads next has it, or never had it.
            all.extend((!is_list).then(|| next.clone()));
            next.apply_or_drop(entry)?;
            if self.left.doubles > 0 && !is_list {
                let mut again = next.clone();
                again.left.doubles -= 1;
                again.pending.push(self.pending[at].clone());
                all.push(again);
            }
            all.push(next);
        }
        for entry in self.due().into_iter().filter(|entry| self.pending.len() < 2 && !self.pending.contains(entry)) {
            let mut next = self.clone();
            next.pending.push(entry);
            all.push(next);
        }
        if self.left.restarts > 0 {
            for (id, old) in &self.processes {
                for (release, flag) in small.others.iter().flat_map(|r| [None, Some(false)].map(|flag| (*r, flag))) {
                    let new = Process { release, starts: old.starts + 1, flag };
                    if self.version().is_none_or(|version| version <= new.release().cluster_version()) {
                        let mut next = self.clone();
                        next.left.restarts -= 1;
                        next.processes.insert(*id, new);
                        all.push(next);
                    }
                }
            }
        }
        if self.left.members > 0 {
            let id = 9;
            for is_learner in [false, true] {
                let change = Change::Add { id: MemberId(id), peer_urls: vec!["http://p9".into()], is_learner };
                let flags = [None, Some(false)].map(|flag| Process { release: small.others[0], starts: 1, flag });
                for process in flags {
                    all.extend(self.change(&change).map(|mut next| {
                        next.processes.insert(id, process);
                        next
                    }));
                }
            }
            all.extend(self.change(&Change::Promote(MemberId(id))));
            all.extend(self.processes.keys().filter_map(|id| self.change(&Change::Remove(MemberId(*id)))));
        }
        if let (Some(version), true) = (self.version(), self.left.downgrades > 0) {
            let down = ClusterVersion { minor: version.minor - 1, ..version };
            let to = Some(down).filter(|_| self.state.cluster.downgrade.is_none());
            let mut next = self.clone();
            next.left.downgrades -= 1;
            next.apply(Pending::Cluster(ClusterEntry::Downgrade { to }))?;
            all.push(next);
        }
        Ok(all)
    }

    /// Equal where two worlds differ in nothing but the numbers of their entries: of those only the order counts.
    fn key(&self) -> u64 {
        let mut cluster = self.state.cluster.clone();
        let mut pending = self.pending.clone();
        let now = cluster.inputs;
        for pending in &mut pending {
            if let Pending::Cluster(ClusterEntry::Decide { inputs, .. }) = pending {
                *inputs = LogIndex(u64::from(*inputs == now));
            }
        }
        (cluster.inputs, cluster.behind) = (LogIndex(1), cluster.behind.map(|_| LogIndex(1)));
        let mut pending: Vec<String> = pending.iter().map(|pending| format!("{pending:?}")).collect();
        pending.sort();
        let mut hasher = DefaultHasher::new();
        format!("{cluster:?} {pending:?} {:?} {:?} {:?}", self.processes, self.left, self.said).hash(&mut hasher);
        hasher.finish()
    }
}

/// States and steps, or what must not be.
fn search(small: &Small, wrong: Option<Wrong>, most: usize) -> Found<(usize, usize)> {
    let first = World::new(small, wrong)?;
    let (mut seen, mut queue, mut steps) = (HashSet::from([first.key()]), VecDeque::from([first]), 0);
    while let Some(world) = queue.pop_front() {
        let key = world.key();
        world.stored()?;
        // Of as many states one is left to itself.
        if key.is_multiple_of(SETTLED_ONE_IN) {
            world.settled()?;
        }
        for next in world.next(small)? {
            steps += 1;
            if seen.len() < most && seen.insert(next.key()) {
                queue.push_back(next);
            }
        }
    }
    Ok((seen.len(), steps))
}

const SETTLED_ONE_IN: u64 = 4;

const WORLDS: [Small; 5] = [
    // A new cluster; a patch with another default.
    Small { releases: &["3.6.0", "3.6.1"], others: &["3.6.1", "3.6.0"], left: left(1, 0, 0, 1), is_settled: false },
    // Up from where no gates are, and a member that comes or goes meanwhile.
    Small { releases: &["3.5.0", "3.6.0"], others: &["3.6.0"], left: left(1, 1, 0, 0), is_settled: true },
    // A learner that wishes otherwise, is promoted, or goes.
    Small { releases: &["3.6.1", "3.6.1"], others: &["3.6.1"], left: left(1, 2, 0, 0), is_settled: true },
    // Up, down and up again, with silent members in between.
    Small { releases: &["3.7.0", "3.6.1"], others: &["3.7.0", "3.6.0"], left: left(2, 0, 1, 0), is_settled: true },
    // To where a feature is locked, from three releases.
    Small {
        releases: &["3.7.0", "3.8.0", "3.8.0"],
        others: &["3.8.0", "3.7.0"],
        left: left(1, 0, 1, 1),
        is_settled: true,
    },
];

fn search_all(most: usize) {
    for (number, small) in WORLDS.iter().enumerate() {
        let (states, steps) = search(small, None, most).unwrap_or_else(|what| panic!("world {number}: {what}"));
        println!("world {number} of {:?}: {states} states, {steps} steps", small.releases);
        assert!(states > 100, "world {number} is too small to show anything: {states} states");
    }
}

#[test]
fn in_every_order_of_events_nothing_is_on_that_not_all_voters_want() {
    search_all(8_000);
}

#[test]
#[ignore = "slow: minutes; 8,000 states of each world by default"]
fn the_same_with_many_more_states() {
    search_all(300_000);
}

fn must_find(all: &[Wrong]) {
    for wrong in all {
        let found = WORLDS.iter().enumerate().find_map(|(number, small)| {
            search(small, Some(*wrong), 8_000).err().map(|what| format!("world {number}: {what}"))
        });
        println!("{wrong:?}: {found:?}");
        assert!(found.is_some(), "{wrong:?} is not found");
    }
}

#[test]
fn each_wrong_rule_is_found() {
    use Wrong::{InputsIgnored, LeaderFillsGaps, LearnerCounted, MembershipAhead, NoWipe};
    must_find(&[NoWipe, InputsIgnored, LeaderFillsGaps, LearnerCounted, MembershipAhead]);
}

#[test]
#[ignore = "not found yet: after a wipe nothing is stale, and no world has a flag against a lock decided before it"]
fn a_stale_wish_and_a_late_lock_are_found() {
    must_find(&[Wrong::StaleAnd, Wrong::LockAfterMap]);
}

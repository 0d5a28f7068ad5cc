//! All interleavings of a few events over the real `apply`, breadth first: members of releases that know different features are restarted
//! with another release or flag, come, go and are promoted; what they and the leader propose comes late, twice or never
//! (KEP-4647, "Consensus Algorithm"). States that differ in nothing but numbers of entries are one.
//!
//! Each wrong rule that somebody might have written (`Wrong`) must be found.

mod events;
mod search;

use std::collections::BTreeMap;

use bytes::Bytes;
use proto::{ClusterId, ClusterVersion, LogIndex, MemberId, Release};

use crate::{
    cluster::{
        downgrade::LOWEST,
        entry::Entry as ClusterEntry,
        gate::Gate,
        leader_proposals::{Heard, Own, of_leader, of_member},
        member::Starts,
        membership::Membership,
    },
    entry::{Entry, EntryKind},
    features::{COMPRESSION, COUNTERS, Features, LEASE_CHECKPOINT, Overrides, Registry},
    state::State,
};

const NAMES: [&str; 3] = [LEASE_CHECKPOINT, COMPRESSION, COUNTERS];

/// A rule that is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// A new version leaves the proposals.
    NoWipe,
    /// A decision counts, whatever has changed since it was made.
    InputsIgnored,
    /// It takes the default for who has not spoken,
    LeaderFillsGaps,
    /// counts learners,
    LearnerCounted,
    /// or goes by members that an entry names which is not applied yet.
    MembershipAhead,
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
        let on = NAMES.map(|name| state.cluster.is_enabled(name, registry));
        for (other, registry, another) in states {
            hold(state == another, || format!("{first} and {other} differ after {pending:?}"))?;
            let same = NAMES.map(|name| another.cluster.is_enabled(name, registry)) == on;
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

//! All interleavings of a few events over the real `apply`, breadth first: members of releases that know different features are restarted
//! with another release or flag, come, go and are promoted, and fall silent; what they and the leader propose comes late, twice or never,
//! and so do writes of clients that need a feature (KEP-4647, "Consensus Algorithm"). States that differ in nothing but numbers of
//! entries are one.
//!
//! Each wrong rule that somebody might have written (`Wrong`) must be found.

mod events;
mod properties;
mod search;
mod writes;
mod wrong;

use std::collections::{BTreeMap, BTreeSet};

use proto::{ClusterId, ClusterVersion, LogIndex, MemberId, Release};

use crate::{
    cluster::{
        downgrade::LOWEST,
        entry::Entry as ClusterEntry,
        gate::Gate,
        leader_proposals::{Heard, Own, of_member},
        member::Starts,
        membership::Membership,
    },
    features::{COMPRESSION, COUNTERS, Features, LEASE_CHECKPOINT, Overrides, Registry},
    state::State,
};
use writes::{LEASE, Write};
use wrong::Wrong;

const NAMES: [&str; 3] = [LEASE_CHECKPOINT, COMPRESSION, COUNTERS];

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    release: &'static str,
    starts: u64,
    /// What it says of counters.
    flag: Option<bool>,
}

impl Process {
    fn release(&self) -> Release {
        release_of(self.release)
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
    Write(Write),
}

/// How often each may happen.
#[derive(Clone, Copy, Debug)]
struct Left {
    restarts: u8,
    members: u8,
    downgrades: u8,
    doubles: u8,
    /// That the leader does not hear a member for a while: so it is, too, as another one begins to lead.
    silences: u8,
    writes: u8,
}

impl Left {
    /// One more of each kind that there is.
    fn more(self) -> Self {
        let more = |left: u8| left + u8::from(left > 0);
        Self {
            restarts: more(self.restarts),
            members: more(self.members),
            downgrades: more(self.downgrades),
            doubles: more(self.doubles),
            silences: more(self.silences),
            writes: more(self.writes),
        }
    }
}

const NOTHING: Left = Left { restarts: 0, members: 0, downgrades: 0, doubles: 0, silences: 0, writes: 0 };

#[derive(Clone, Debug)]
struct World {
    state: State,
    processes: BTreeMap<u64, Process>,
    pending: Vec<Pending>,
    left: Left,
    /// Whom the leader does not hear.
    silent: Option<u64>,
    /// The entry that has set the version.
    versioned: LogIndex,
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

fn release_of(text: &str) -> Release {
    text.parse().unwrap()
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
        let (mut state, pending, said) = (State::default(), Vec::new(), BTreeMap::new());
        state.keys.lease_grant(&LEASE).map_err(|error| error.to_string())?;
        let (silent, versioned) = (None, LogIndex(0));
        let mut world = Self { state, processes, pending, left: small.left, silent, versioned, said, wrong };
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
        let by = |release| self.applied(index, &pending, release);
        let mut all = self.running().map(|(_, process)| process.release).collect::<BTreeSet<_>>().into_iter().rev();
        let Some(first) = all.next() else { return Ok(()) };
        let after = by(first);
        for release in all {
            let other = by(release);
            hold(after.state == other.state, || format!("{first} and {release} differ after {pending:?}"))?;
            // Below the version it stops at this entry, and answers nobody.
            let stops = after.state.cluster.version > Some(release_of(release).cluster_version());
            hold(stops || after.on == other.on, || {
                format!("{first} and {release} answer otherwise after {pending:?}")
            })?;
            let is_same = after.is_taken == other.is_taken;
            hold(is_same, || format!("of {first} and {release} one takes {pending:?}, the other does not"))?;
        }
        let before = std::mem::replace(&mut self.state, after.state);
        self.note(&before, &pending);
        self.check(&before, after.on)?;
        match (pending, after.is_taken) {
            (Pending::Write(write), Some(is_taken)) => self.check_write(&before, write, is_taken),
            _ => Ok(()),
        }
    }

    fn heard(&self) -> BTreeMap<MemberId, Heard> {
        let heard =
            |(id, p): (&u64, &Process)| (MemberId(*id), Heard { release: p.release(), starts: Starts(p.starts) });
        self.running().filter(|(id, _)| Some(**id) != self.silent).map(heard).collect()
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
}

//! What the hosts share: the keys below [`PREFIX`], as data.
//!
//! No I/O and no decisions. Every change is a transaction, as data too: `txn.rs` says who writes a key, and under which
//! compare. agent/PROTOCOL.md draws the whole protocol.

mod backup;
pub mod change;
mod hex;
pub mod hops;
pub mod host_id;
pub mod host_record;
pub mod membership;
mod pause;
pub mod rules;
pub mod seat;
pub mod txn;

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher},
    sync::Arc,
};

use proto::{ClusterId, LeaseId, MemberId, Revision};
use serde::{Deserialize, Serialize};

use crate::unknown::Unknown;
pub use backup::Backup;
use change::Change;
use hops::Hops;
use host_id::HostId;
use host_record::HostRecord;
use membership::{Membership, RoleChange};
pub use pause::Pause;
use seat::Seats;

/// What every key begins with. It is no setting: hosts that looked for the keys in two places would not see each
/// other, and each could take a member down.
pub const PREFIX: &str = "/baton/";

/// Every key, read in one Range: one moment of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Keys {
    /// The run that stands, or the last one.
    pub run: Option<At<Run>>,
    /// The agents at work. Leased: an agent that dies disappears.
    pub agents: BTreeMap<HostId, At<Participant>>,
    pub baton: Option<At<Baton>>,
    /// The step lock. Not leased: the real lock.
    pub step: Option<At<StepLock>>,
    /// Steps that were abandoned while their host could still wake up. Not leased.
    pub abandoned: BTreeMap<MemberId, At<StepLock>>,
    /// The hosts that carry members, where any is adopted or has joined so. Not leased.
    pub hosts: BTreeMap<HostId, At<HostRecord>>,
    /// Agents and batons without a lease. Nobody keeps them alive and nothing would ever take
    /// them away, so they are nobody's, whatever they say.
    pub stale: Vec<Stale>,
    /// The leases of agents and the baton.
    pub leases: BTreeMap<KeyName, LeaseId>,
}

/// A key that should be bound to a lease and is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stale {
    pub key: KeyName,
    /// The revision that wrote it last.
    pub modified: Revision,
}

/// A value and where it stands in the store's history.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct At<T> {
    /// The revision that created the key.
    pub created: Revision,
    /// The revision that wrote it last.
    pub modified: Revision,
    pub value: T,
}

/// One rollout, from its first agent to its end. Written by compare on its modified revision only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run {
    /// Tells this run from any other.
    pub id: RunId,
    /// What all hosts agreed to do.
    pub intent: Arc<Intent>,
    pub state: RunState,
    /// Whether members go to another minor, as the agent that began the run saw it: then there is a point of
    /// no return.
    #[serde(default)]
    pub changes_minor: bool,
    /// The members that were brought to their target, as their own agents wrote with each record's end.
    #[serde(default)]
    pub done: Vec<MemberId>,
    /// The name of the host whose agent began it, for people; written once, with the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_by: Option<Arc<str>>,
    /// Who is to be a member; only where the run changes that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub membership: Option<Arc<Membership>>,
    /// What was saved before anything was changed; only where the run asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Arc<Backup>>,
    /// Whether no step of it is to begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Arc<Pause>>,
    /// What a newer agent wrote beside it.
    #[serde(skip)]
    pub unknown: Unknown,
}

/// A random id, made by the agent that creates the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(#[serde(with = "hex")] pub u128);

/// Tells one attempt at taking a member down from every other, through crashes and late answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptId(#[serde(with = "hex")] pub u128);

/// Tells one taking of the baton from every other; each has a lease of its own, whose id is made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TakeId(#[serde(with = "hex")] pub u128);

impl TakeId {
    /// The id of its lease: 63 bits of it, never 0, which would let etcd choose one.
    pub fn lease(self) -> LeaseId {
        LeaseId((self.0 as u64 & 0x7fff_ffff_ffff_ffff).max(1) as i64)
    }
}

/// What all hosts must agree on; paths, units, hooks and time-outs are each host's own and not in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    pub cluster: ClusterId,
    pub change: Change,
    /// What the cluster's gates must be at the end.
    #[serde(default)]
    pub gates: BTreeMap<String, bool>,
    /// Whether to stop before the point of no return.
    pub finalize: Finalize,
    /// What is known to hurt, and goes on all the same: ids of the catalogue.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub accepted_hazards: BTreeSet<String>,
    /// Whether a backup is made before anything is changed. Where it is to lie is each host's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backup: bool,
    /// The way that `change` is a hop of, where a playbook leads over several releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<Arc<Hops>>,
}

impl Intent {
    /// The same way, at this hop of it. What is expected of the gates is of its end.
    pub fn at(&self, hop: &Change) -> Self {
        let gates = match &self.hops {
            Some(hops) if hops.is_last(hop) => hops.gates.clone(),
            Some(_) => BTreeMap::new(),
            None => self.gates.clone(),
        };
        Self { change: hop.clone(), gates, ..self.clone() }
    }

    /// Whether the other is a hop of the same way, this one or another.
    pub fn is_on_the_way_of(&self, other: &Self) -> bool {
        self.hops.is_some() && self.at(&other.change) == *other
    }
}

/// Cheap, for searches over millions of states that share one intent but for the hop; equality compares everything.
impl Hash for Intent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.cluster.hash(state);
        self.hops.as_ref().and_then(|hops| hops.number(&self.change)).hash(state);
    }
}

/// Whether the run waits for a person before the point of no return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finalize {
    Auto,
    /// It holds before the last member.
    Manual,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    Rolling,
    /// A step failed: nobody takes anything down until its owner lifts the mark.
    Failed {
        member: MemberId,
        why: Arc<str>,
        was: Going,
    },
    /// One member is left and a person must say so before it goes.
    Held {
        member: MemberId,
    },
    Approved,
    RollingBack,
    Done {
        result: RunResult,
    },
}

/// The states in which members are taken down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Going {
    /// [`RunState::Rolling`]
    Rolling,
    /// [`RunState::Approved`]
    Approved,
    /// [`RunState::RollingBack`]
    RollingBack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    /// Every member at its target, and the cluster settled.
    Reached,
    /// Every member back at its old release.
    RolledBack,
}

/// An agent at work on a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Participant {
    /// The host's name, for people; never compared.
    pub host_name: Arc<str>,
    /// The agent's process, by which another one of the same host id is known.
    pub process: ProcessId,
    pub seats: Seats,
    /// Those of its members that are done.
    #[serde(default)]
    pub done: Vec<MemberId>,
    /// What it waits for, for people.
    #[serde(default)]
    pub waits_for: Option<Arc<str>>,
    /// Since when, by its host's clock, as RFC 3339 has it; for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since: Option<Arc<str>>,
    /// What ends that, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Arc<str>>,
    /// What it does to the member in its step, where that cannot be seen of the member itself; for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub does: Option<Arc<str>>,
    /// How much of the backup it makes it has, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backed_up: Option<u8>,
    /// Whether it waits for its host's window to open: nobody waits for it meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_closed: bool,
    /// What a newer agent wrote beside it.
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Baton {
    pub host: HostId,
    /// The process that took it: a later process of the same host deletes it.
    pub process: ProcessId,
    /// The host's name, for people.
    pub host_name: Arc<str>,
    pub take: TakeId,
    /// What a newer agent wrote beside it.
    #[serde(skip)]
    pub unknown: Unknown,
}

/// The step lock: this member is, or may at any instant be, down by our hand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StepLock {
    pub member: MemberId,
    pub host: HostId,
    /// The host's name, for people.
    pub host_name: Arc<str>,
    pub attempt: AttemptId,
    /// The agent's process, by which a host without its state directory sees whether it still lives.
    pub process: ProcessId,
    /// Whether the member goes back.
    pub back: bool,
    /// It is no restart of the agent's: a command runs that may take the whole host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarded: Option<Box<Guarded>>,
    /// It is no restart of the agent's: the member's role changes, and whoever holds the baton may end the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleChange>,
    /// What a newer agent wrote beside it.
    #[serde(skip)]
    pub unknown: Unknown,
}

/// What `agent guard` runs: it may restart the host, or what its members run in, so all of them count as down.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Guarded {
    /// The host's members besides the lock's own, in order of id.
    pub beside: Vec<MemberId>,
    /// The program that is run, for people; never its arguments, which may hold secrets.
    pub command: Arc<str>,
}

/// A process, told apart from any later one with the same pid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The boot it was started in.
    #[serde(with = "hex")]
    pub boot_id: u128,
    /// The namespace that its pid counts in, by the inode of `/proc/self/ns/pid` (pid_namespaces(7)).
    pub pid_namespace: u64,
    pub pid: u32,
    /// Its start, in clock ticks since that boot.
    pub start_time: u64,
}

/// The name of one key, without [`PREFIX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyName {
    /// `run`
    Run,
    /// `agents/<host id>`
    Agent(HostId),
    /// `baton`
    Baton,
    /// `step`
    Step,
    /// `abandoned/<member id>`
    Abandoned(MemberId),
    /// `hosts/<host id>`
    Host(HostId),
}

impl Run {
    /// The direction members go in, if the run is in a state in which any go.
    pub fn going(&self) -> Option<Going> {
        match self.state {
            RunState::Rolling => Some(Going::Rolling),
            RunState::Approved => Some(Going::Approved),
            RunState::RollingBack => Some(Going::RollingBack),
            RunState::Failed { was, .. } => Some(was),
            RunState::Held { .. } | RunState::Done { .. } => None,
        }
    }

    /// Whether this is a newcomer of it.
    pub fn brings(&self, member: MemberId) -> bool {
        self.membership.iter().flat_map(|membership| &membership.joins).any(|join| join.member == Some(member))
    }

    /// Whether it is done, and so history.
    pub fn is_over(&self) -> bool {
        matches!(self.state, RunState::Done { .. })
    }

    /// Whether this run's members go back.
    pub fn is_going_back(&self) -> bool {
        self.going() == Some(Going::RollingBack)
    }

    /// The same run in another state.
    pub fn in_state(&self, state: RunState) -> Self {
        Self { state, ..self.clone() }
    }

    /// The same run with other members.
    pub fn with_membership(&self, membership: Membership) -> Self {
        Self { membership: Some(Arc::new(membership)), ..self.clone() }
    }
}

impl StepLock {
    /// The members that are, or may be, down by it.
    pub fn members(&self) -> impl Iterator<Item = MemberId> {
        let beside = self.guarded.iter().flat_map(|guarded| guarded.beside.iter().copied());
        std::iter::once(self.member).chain(beside)
    }
}

impl From<Going> for RunState {
    fn from(going: Going) -> Self {
        match going {
            Going::Rolling => Self::Rolling,
            Going::Approved => Self::Approved,
            Going::RollingBack => Self::RollingBack,
        }
    }
}

impl Keys {
    /// The live agent that owns this member.
    pub fn owner_of(&self, member: MemberId) -> Option<(HostId, &Participant)> {
        self.agents.iter().find(|(_, agent)| agent.value.seats.has(member)).map(|(host, at)| (*host, &at.value))
    }

    /// Whether a live agent owns this member that does not wait for its host's window.
    pub fn may_go_now(&self, member: MemberId) -> bool {
        self.owner_of(member).is_some_and(|(_, agent)| !agent.is_closed)
    }

    /// Whether a live agent owns this member.
    pub fn has_participant(&self, member: MemberId) -> bool {
        self.owner_of(member).is_some()
    }
}

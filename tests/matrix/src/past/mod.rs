//! Clusters with a past: what people do to a cluster in years, in a minute, and then a rolling upgrade as a script does it.
//!
//! `ground (releases, size) -> plan (seed, pure) -> run -> judged after every step`. One generator, one set of weights, for
//! every ground: it does not know what is hunted there ([`hunted`] does, and is asked when a plan has failed). No agent is in
//! it: the agent would refuse these ways. `scripts/rediscover` runs it. Prior art: UpFuzz, DUPTester, etcd's robustness suite.
//!
//! A matrix file writes such a life down itself ([`ancestry`]), and the agents' plans begin where it ends ([`kept`]).

pub mod ancestry;
pub mod cli;
pub mod flags;
pub mod generate;
pub mod hunt;
pub mod hunted;
pub mod kept;
pub mod run;
mod tree;

use std::time::Duration;

use proto::Release;

use crate::plan::Host;

/// All that the generator is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// The releases, from the one that the cluster is born at to the last.
    pub way: Vec<Release>,
    /// How many members it is born with.
    pub size: usize,
}

/// What is done to one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub ground: Ground,
    pub seed: u64,
    pub habits: Habits,
    pub steps: Vec<Step>,
}

/// What stays as it is for the whole life of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Habits {
    /// Whether members and clients speak TLS, and each shows a certificate.
    pub tls: bool,
    /// After how many entries members take a snapshot; `None` is etcd's own figure.
    pub snapshot_count: Option<u64>,
    /// How many entries the leader keeps for members that are behind, where a release lets one say.
    pub kept_entries: Option<u64>,
    /// How many revisions a compaction takes at once.
    pub compaction_batch: Option<u64>,
    /// How many keys clients use.
    pub keys: u64,
    /// Every so often some member is defragmented, whatever else goes on.
    pub defragments_every: Option<Duration>,
    /// Every so often all but the last revisions are compacted, whatever else goes on.
    pub compacts_every: Option<Duration>,
    /// Clients send transactions that write, and read as of a revision that they name.
    pub reads_in_transactions: bool,
}

/// One step, and who is killed meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// From 1.
    pub id: usize,
    pub action: Action,
    pub kill: Option<Kill>,
}

/// These members are killed so long after this moment, and started again at once; and again so long after that, as one is
/// that the kernel ends for want of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    pub members: Vec<Host>,
    pub since: Moment,
    pub after: Duration,
    /// How often, at least once.
    pub times: u64,
}

/// When the time until a kill begins to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// As the step begins. Clients that write go on until the last kill is over.
    Beginning,
    /// As the step is answered: what a member does behind its answer goes on.
    Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Every member is started at the first release.
    Start,
    Write {
        mix: Mix,
        count: u64,
    },
    /// History is compacted up to so many revisions before the newest.
    Compact {
        behind: u64,
    },
    Defragment {
        member: Host,
    },
    /// Authentication is turned on, or off again.
    Auth {
        on: bool,
    },
    /// One more user, with a role.
    AddUser,
    /// A user that there is may do more from now on.
    Grant,
    /// Requests of the v2 API, which 3.4 still has; at the end its keys are deleted, unless they are kept.
    OldApi {
        kept: bool,
    },
    Restart {
        member: Host,
    },
    /// A member leaves for good, or some join one after the other, or both, in this order; those that join may begin as learners
    /// and be promoted.
    Change {
        leaves: Option<Host>,
        joins: Vec<Host>,
        as_learner: bool,
    },
    /// A member is taken off the list with all that it has, and comes back as a new one of its name and place; perhaps as a learner
    /// first, which is promoted.
    Rejoin {
        member: Host,
        as_learner: bool,
    },
    /// A snapshot is saved, every member stopped, and all of them restored from it, by the tools of the release that they run.
    Restore,
    /// A member is away while all this is done, and comes back.
    Away {
        member: Host,
        how: Absence,
        meanwhile: Vec<Action>,
    },
    /// All members are restarted at the next release, one after the other, as each of them serves again.
    Hop {
        to: Release,
        order: Vec<Host>,
        /// So many writes between two of them.
        writes: u64,
    },
}

/// What clients write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    Puts,
    /// Puts and deletions; the last is a deletion.
    Churn,
    Large,
    Transactions,
    /// Keys with leases, some of which are revoked.
    Leases,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// It was stopped.
    Stopped,
    Killed,
    /// It stands still, with its connections open.
    Paused,
}

//! One member, as the log has it.

use std::num::NonZeroU64;

use proto::ClusterVersion;

use crate::features::Features;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its name; empty until it has published it.
    pub name: String,
    /// Where other members reach it.
    pub peer_urls: Vec<String>,
    /// Where it serves clients; empty until it has published them.
    pub client_urls: Vec<String>,
    pub is_learner: bool,
    /// How often it had started when it published last: what an earlier process of it says later is no news.
    pub starts: Starts,
    /// Which start that was; none where an earlier release published it.
    pub start_id: Option<StartId>,
    /// Which data directory it has: what comes from another one is not this member's.
    pub incarnation: Option<Incarnation>,
    /// What it wants of the gate.
    pub proposal: Option<Proposal>,
}

/// A data directory: a random number that is born with it, and never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation(pub NonZeroU64);

impl Incarnation {
    /// As it is stored and sent, where 0 is none.
    pub fn read(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// As it is stored and sent.
    pub fn written(incarnation: Option<Self>) -> u64 {
        incarnation.map_or(0, |incarnation| incarnation.0.get())
    }
}

/// One start of a member: a random number that is made at each, and never 0. An older copy of a data directory counts the same
/// numbers again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartId(pub NonZeroU64);

impl StartId {
    /// As it is stored and sent, where 0 is none.
    pub fn read(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// As it is stored and sent.
    pub fn written(id: Option<Self>) -> u64 {
        id.map_or(0, |id| id.0.get())
    }
}

/// Which start of a member, by its number and by its id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    pub starts: Starts,
    pub id: Option<StartId>,
}

impl Start {
    /// Whether it has the number of one that is known, and is not that one.
    pub fn is_another(self, known: Self) -> bool {
        self.starts == known.starts && known.id.is_some() && self.id != known.id
    }
}

/// How often a member has started; counted by itself, durably, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Starts(pub u64);

/// What a member wants of the gate, and at which cluster version it wanted that: at another one it counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The cluster version it was made at.
    pub version: ClusterVersion,
    /// Each feature that it knows at that version.
    pub features: Features,
}

/// What a member publishes of itself (KEP-4647, `Attributes`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    pub name: String,
    pub client_urls: Vec<String>,
    /// Its proposal; none leaves the one that is stored, as a member that does not know the cluster's version yet has
    /// nothing to say about it.
    pub proposal: Option<Proposal>,
}

impl Member {
    /// Whether it has ever published itself (etcd, `IsStarted`).
    pub fn has_started(&self) -> bool {
        !self.client_urls.is_empty() || self.starts > Starts(0)
    }

    /// The start that it has published last.
    pub fn start(&self) -> Start {
        Start { starts: self.starts, id: self.start_id }
    }

    /// What it proposes at this cluster version.
    pub fn proposed_at(&self, version: ClusterVersion) -> Option<&Features> {
        self.proposal.as_ref().filter(|proposal| proposal.version == version).map(|proposal| &proposal.features)
    }

    /// Whether there is nothing new in these words of its process with this count.
    pub fn has_said(&self, attributes: &Attributes, starts: Starts) -> bool {
        let Attributes { name, client_urls, proposal } = attributes;
        let is_same = proposal.is_none() || *proposal == self.proposal;
        is_same && self.starts == starts && self.name == *name && self.client_urls == *client_urls
    }
}

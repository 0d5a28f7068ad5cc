//! What stands in the log: the one vocabulary of changes, and its bytes.
//!
//! Each entry says which minor was the first to know all of it. At a lower cluster version it does nothing, on every member: so a
//! release that cannot read it need not, and all come to the same state.

mod decode;
mod encode;

use proto::{
    ClusterVersion,
    batonpb::AddRequest,
    etcdserverpb::{
        AlarmRequest, CompactionRequest, DeleteRangeRequest, LeaseCheckpointRequest, LeaseGrantRequest,
        LeaseRevokeRequest, PutRequest, TxnRequest,
    },
};

pub(crate) use decode::{cluster as decode_cluster, version as decode_version};
pub(crate) use encode::{cluster as encode_cluster, version as encode_version};

use crate::{
    cluster::{self, FIRST_WITH_GATES},
    features::COUNTERS,
};

/// The first release of this node, and what every one of them knows.
const FIRST: ClusterVersion = ClusterVersion { major: 3, minor: 5 };

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Features of the cluster that must be on at its index; else it is refused there (KEP-4647, "Client APIs Changes").
    pub requires: Vec<String>,
    pub what: EntryKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum EntryKind {
    Put(PutRequest),
    DeleteRange(DeleteRangeRequest),
    /// A transaction that writes.
    Txn(TxnRequest),
    Compact(CompactionRequest),
    LeaseGrant(LeaseGrantRequest),
    LeaseRevoke(LeaseRevokeRequest),
    /// Writes down what leases have left.
    LeaseCheckpoint(LeaseCheckpointRequest),
    /// Adds to the number that a key holds.
    CounterAdd(AddRequest),
    /// Raises or disarms an alarm.
    Alarm(AlarmRequest),
    /// Changes what is known about the cluster.
    Cluster(cluster::entry::Entry),
}

impl Entry {
    /// The first minor that knows all of it. Below that cluster version nobody proposes it, and nobody applies it (K-36).
    pub fn since(&self) -> ClusterVersion {
        let of_requires = if self.requires.is_empty() { FIRST } else { FIRST_WITH_GATES };
        self.what.since().max(of_requires)
    }
}

impl EntryKind {
    /// The feature that it belongs to: where that is off it is refused (KEP-4647, "User Stories", story 1).
    pub fn feature(&self) -> Option<&'static str> {
        match self {
            Self::CounterAdd(_) => Some(COUNTERS),
            _ => None,
        }
    }

    /// The first minor that knows its kind.
    fn since(&self) -> ClusterVersion {
        match self {
            Self::LeaseCheckpoint(_) | Self::CounterAdd(_) => FIRST_WITH_GATES,
            // 3.5 knows the gate's entries, and has no gate (KEP-4647, "Version Skew Strategy").
            _ => FIRST,
        }
    }

    /// Whether what it costs to apply grows with the state: anything else takes microseconds.
    pub fn may_take_long(&self) -> bool {
        matches!(self, Self::DeleteRange(_) | Self::Txn(_) | Self::LeaseRevoke(_))
    }
}

impl From<EntryKind> for Entry {
    fn from(what: EntryKind) -> Self {
        Self { requires: Vec::new(), what }
    }
}

/// Bytes that this member must not apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// A later release wrote it. It does nothing at any cluster version that this member can have.
    #[error("entry of release {0}, which this member does not know")]
    Newer(ClusterVersion),
    #[error("a damaged entry: {0}")]
    Damaged(String),
}

#[cfg(test)]
#[path = "entry_test.rs"]
mod tests;

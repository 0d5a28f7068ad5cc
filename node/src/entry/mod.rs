//! What stands in the log: the one vocabulary of changes, and its bytes.
//!
//! Each entry says which minor was the first to know its kind. A member of an older release stops there and says so; to
//! pass over what it does not know would make it another state than the others'.

mod decode;
mod encode;

use proto::{
    ClusterVersion,
    etcdserverpb::{
        AlarmRequest, CompactionRequest, DeleteRangeRequest, LeaseCheckpointRequest, LeaseGrantRequest,
        LeaseRevokeRequest, PutRequest, TxnRequest,
    },
};

pub(crate) use decode::cluster as decode_cluster;
pub(crate) use encode::cluster as encode_cluster;

use crate::cluster;

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
    /// Raises or disarms an alarm.
    Alarm(AlarmRequest),
    /// Changes what is known about the cluster.
    Cluster(cluster::entry::Entry),
}

impl EntryKind {
    /// The first minor that knows it: no leader proposes it below that cluster version.
    pub fn since(&self) -> ClusterVersion {
        match self {
            Self::LeaseCheckpoint(_) => ClusterVersion { minor: 6, ..FIRST },
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
    /// A release that this one does not know wrote it.
    #[error("entry of release {0}, which this member does not know")]
    Newer(ClusterVersion),
    #[error("a damaged entry: {0}")]
    Damaged(String),
}

#[cfg(test)]
#[path = "entry_test.rs"]
mod tests;

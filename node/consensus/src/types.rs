//! openraft's type parameters as they are here, and the names the rest of this crate has for them.
//!
//! Leaders are those of the raft paper: one a term, so that a term and an index say which entry it is.

use std::fmt;

use bytes::Bytes;
use openraft::{BasicNode, impls::leader_id_std};

/// What an entry tells the state machine; nobody here looks into it.
#[derive(Clone, PartialEq, Eq)]
pub struct Command(pub Bytes);

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

openraft::declare_raft_types!(
    /// The type parameters.
    pub Types:
        D = Command,
        R = (),
        NodeId = u64,
        Node = BasicNode,
        LeaderId = leader_id_std::LeaderId<u64, u64>,
);

use openraft::{alias, raft};

pub(crate) type Committed = alias::CommittedLeaderIdOf<Types>;
pub(crate) type LeaderId = alias::LeaderIdOf<Types>;
pub(crate) type LogId = alias::LogIdOf<Types>;
pub(crate) type Vote = alias::VoteOf<Types>;
pub(crate) type Entry = alias::EntryOf<Types>;
pub(crate) type Payload = alias::PayloadOf<Types>;
pub(crate) type Membership = openraft::Membership<u64, BasicNode>;
pub(crate) type StoredMembership = alias::StoredMembershipOf<Types>;
pub(crate) type SnapshotMeta = alias::SnapshotMetaOf<Types>;
pub(crate) type Snapshot = alias::SnapshotOf<Types, crate::snapshots::SnapshotFile>;
pub(crate) type AppendRequest = raft::AppendEntriesRequest<Types>;
pub(crate) type AppendResult = raft::StreamAppendResult<Types>;
pub(crate) type VoteRequest = raft::VoteRequest<Types>;
pub(crate) type VoteResponse = raft::VoteResponse<Types>;
pub(crate) type TransferRequest = raft::TransferLeaderRequest<Types>;

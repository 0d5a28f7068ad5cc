//! openraft's type parameters as they are here, and the names the rest of this crate has for them.
//!
//! Leaders are those of the raft paper: one a term, so that a term and an index say which entry it is.

use std::{error::Error, sync::Arc};

use openraft::{BasicNode, errors::ErrorSource, impls::leader_id_std};

use crate::{format::Command, group::with_causes};

/// Why the log or the state machine failed, in its own words: openraft's own type puts the name of a Rust type before them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StorageFault(Arc<str>);

impl ErrorSource for StorageFault {
    fn from_error<E: Error + 'static>(error: &E) -> Self {
        Self(with_causes(error).into())
    }

    fn from_string(text: impl ToString) -> Self {
        Self(text.to_string().into())
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
        ErrorSource = StorageFault,
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

//! What clients write that needs a feature.

use proto::{
    batonpb::AddRequest,
    etcdserverpb::{LeaseCheckpoint, LeaseCheckpointRequest, LeaseGrantRequest, PutRequest},
};

use super::*;
use crate::entry::{Entry, EntryKind};

/// There from the start.
pub(super) const LEASE: LeaseGrantRequest = LeaseGrantRequest { id: 1, ttl: 60 };
const LEFT_S: i64 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    Add,
    Checkpoint,
    /// With `requires`.
    Put(&'static str),
}

impl Write {
    /// Those that change what later entries find.
    pub(super) const LASTING: [Self; 3] = [Self::Add, Self::Checkpoint, Self::Put(COMPRESSION)];
    pub(super) const ALL: [Self; 6] = [
        Self::Add,
        Self::Checkpoint,
        Self::Put(LEASE_CHECKPOINT),
        Self::Put(COMPRESSION),
        Self::Put(COUNTERS),
        Self::Put("NobodyKnowsIt"),
    ];

    /// What it needs.
    pub(super) fn feature(self) -> &'static str {
        match self {
            Self::Add => COUNTERS,
            Self::Checkpoint => LEASE_CHECKPOINT,
            Self::Put(feature) => feature,
        }
    }

    pub(super) fn entry(self) -> Entry {
        match self {
            Self::Add => EntryKind::CounterAdd(AddRequest { key: b"n".to_vec(), by: 1 }).into(),
            Self::Checkpoint => {
                let checkpoints = vec![LeaseCheckpoint { id: LEASE.id, remaining_ttl: LEFT_S }];
                EntryKind::LeaseCheckpoint(LeaseCheckpointRequest { checkpoints }).into()
            }
            Self::Put(feature) => {
                let put = PutRequest { key: b"k".to_vec(), value: b"v".to_vec(), ..PutRequest::default() };
                Entry { requires: vec![feature.to_owned()], what: EntryKind::Put(put) }
            }
        }
    }
}

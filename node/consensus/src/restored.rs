//! How a member begins with a state that a person gives it: a snapshot at the group's first entry, and a log that goes on behind
//! it. Every member of the new group begins with the same one, so that entry counts as committed (etcd, `saveWALAndSnap`).

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::mpsc,
};

use openraft::{BasicNode, vote::RaftLeaderId as _};
use wal::{Wal, WalError};

use crate::{
    format::{Wire, log_id},
    log_store::entry_id,
    machine::Frozen,
    snapshots::{SnapshotError, Snapshots},
    types::{LeaderId, Membership, SnapshotMeta, StoredMembership, Vote},
};

/// The entry that the state is as of.
pub const FIRST_INDEX: u64 = 1;
/// Its term; the first leader's is a later one.
const TERM: u64 = 1;

/// Why a member cannot begin with a state.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// These members make no group.
    #[error("these members make no group: {0}")]
    Members(String),
    /// The snapshot is not written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The log does not take it.
    #[error(transparent)]
    Log(#[from] WalError),
    /// The log is not durable.
    #[error("cannot write the log")]
    Disk(#[source] io::Error),
}

/// Writes what a member of this new group starts with, into an empty log and an empty folder of snapshots. All of it is durable
/// afterwards.
///
/// # Errors
/// [`BeginError`]: what was written so far is of no use.
pub fn begin_with(
    state: Frozen,
    members: &BTreeMap<u64, String>,
    log: &Wal,
    snapshots: &Snapshots,
) -> Result<(), BeginError> {
    let nodes: BTreeMap<_, _> = members.iter().map(|(id, address)| (*id, BasicNode::new(address))).collect();
    let voters: BTreeSet<_> = members.keys().copied().collect();
    // Of the members that there are none is the first in an empty list alone, which is no membership.
    let first = voters.first().copied().unwrap_or_default();
    let membership = Membership::new(vec![voters], nodes).map_err(|error| BeginError::Members(error.to_string()))?;
    let at = log_id(TERM, FIRST_INDEX);
    let meta = SnapshotMeta { last_log_id: Some(at), last_membership: StoredMembership::new(Some(at), membership) };
    snapshots.write(&meta, state)?;
    // As if it had been elected by all; not as one that leads, or it would go on leading a term that nobody has seen.
    let vote = Vote { leader_id: LeaderId::new(TERM, first), committed: false };
    durable(|done| log.save_vote(vote.encode(), done))?;
    durable(|done| log.purge(entry_id(&at), done))
}

/// Makes a change and waits until it is durable.
fn durable(
    change: impl FnOnce(Box<dyn FnOnce(io::Result<()>) + Send>) -> Result<(), WalError>,
) -> Result<(), BeginError> {
    let (done, is_done) = mpsc::channel();
    change(Box::new(move |result| drop(done.send(result))))?;
    is_done.recv().unwrap_or_else(|_| Err(io::Error::other("the log was closed"))).map_err(BeginError::Disk)
}

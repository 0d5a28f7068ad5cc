//! The key-value state: every key with its history, as etcd's clients know it (etcd, "Data model").
//!
//! Pure and deterministic: no clock, disk, network or chance, and nothing that is seen depends on the order of a hash map.
//! Two stores that were given the same requests are equal, whether or not one of them went through a snapshot on the way.
//! Not in here: who may write, the quota, and everything of a response's header but its revision.
//!
//! A request is applied in three steps: [`check`] (before it is proposed; says what is wrong whatever the state is), then
//! `write` or `txn`, whose changes all get the next revision and are taken back where one of them fails, then the change
//! list, which is what watches read.

pub mod check;
mod compact;
mod compare;
mod counter;
mod events;
mod hash;
mod history;
mod key_range;
mod lease;
mod listing;
mod operations;
mod overlap;
mod range;
mod request;
mod restore;
mod size;
mod snapshot;
mod txn;
mod write;

use std::{cmp::Ordering, iter};

use bytes::Bytes;
use imbl::{OrdMap, Vector};
use proto::{
    Revision,
    etcdserverpb::{RangeRequest, ResponseHeader},
};

pub use compact::Compaction;
pub use events::{Bound, Changed, Stretch};
pub use hash::CompactionHashes;
pub use key_range::KeyRange;
pub(crate) use listing::field_bytes;
pub use listing::{Listing, Pieces};
pub use operations::Operations;
pub use range::Extent;
pub use restore::{Restore, SnapshotError};
pub use txn::{Performed, is_read_only, is_serializable, ranges};

use crate::{api_error::ApiError, lease::Leases};
use history::{History, Live, Position, Record};

/// The state that requests are applied to.
///
/// A copy costs nothing and is never changed: the two share all but what is written from then on. So whoever reads much (a
/// snapshot, a hash, a long range) reads a copy, and holds up nobody.
#[derive(Debug, Clone)]
pub struct Store {
    /// The newest revision; each write moves it up by one.
    revision: Revision,
    /// Below this nothing can be read any more; -1 before the first compaction.
    compacted: Revision,
    /// No history is empty; a deleted key stays until it is compacted away.
    keys: OrdMap<Bytes, History>,
    /// Every change from `compacted` on, and those before it that are still to be forgotten, in order.
    changes: Vector<Change>,
    /// Before this some may be missing there.
    gone: Revision,
    /// Where in `changes` the last compaction is to be gone on with; what lies before that place is kept. `None`: it is done.
    forgetting: Option<usize>,
    /// The last compaction, until it is hashed or not to be. No state: two stores that differ in it alone are equal.
    unhashed: Option<Compaction>,
    leases: Leases,
    /// What all records take; see [`size`].
    records_bytes: u64,
    /// How many keys are there now.
    alive: usize,
}

/// That a key was changed; what it became is in its history.
#[derive(Debug, Clone, PartialEq)]
struct Change {
    at: Position,
    key: Bytes,
}

impl Default for Store {
    /// An empty store is at revision 1, so that the first write is at 2 (etcd, `NewStore`).
    fn default() -> Self {
        Self {
            revision: Revision(1),
            compacted: Revision(-1),
            keys: OrdMap::new(),
            changes: Vector::new(),
            gone: Revision(-1),
            forgetting: None,
            unhashed: None,
            leases: Leases::default(),
            records_bytes: 0,
            alive: 0,
        }
    }
}

/// Whether nobody can tell them apart: what a compaction has hidden may be forgotten in one and not yet in the other.
impl PartialEq for Store {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |store: &Self| (store.revision, store.compacted);
        numbers(self) == numbers(other)
            && self.leases == other.leases
            && self.kept().eq(other.kept())
            && self.kept_changes().eq(other.kept_changes())
    }
}

impl Store {
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The oldest revision that can be read and watched; -1 when nothing was ever compacted.
    pub fn compacted(&self) -> Revision {
        self.compacted
    }

    /// How many keys are there now.
    pub fn key_count(&self) -> usize {
        self.alive
    }

    /// The leases and what they hold.
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// The keys that have any record that can be seen, with those records.
    fn kept(&self) -> impl Iterator<Item = (&Bytes, &[Record])> {
        let kept = self.keys.iter().map(|(key, history)| (key, history.kept(self.compacted)));
        kept.filter(|(_, records)| !records.is_empty())
    }

    fn kept_changes(&self) -> impl Iterator<Item = &Change> {
        let first = self.first_change(self.compacted);
        self.changes.focus().narrow(first..).into_iter().filter(|change| self.is_kept(change))
    }

    /// Whether both are one in memory, too.
    #[cfg(test)]
    pub(crate) fn is_shared_with(&self, other: &Self) -> bool {
        self.keys.ptr_eq(&other.keys) && self.changes.ptr_eq(&other.changes)
    }

    /// The keys of a range that were there at a revision, in order.
    fn alive<'a>(&'a self, range: KeyRange<'_>, revision: Revision) -> impl Iterator<Item = Found<'a>> + use<'a> {
        self.histories(range).filter_map(move |(key, history)| {
            let (at, live) = history.at(revision)?;
            Some(Found { key, at, live })
        })
    }

    fn histories<'a>(&'a self, range: KeyRange<'_>) -> impl Iterator<Item = (&'a Bytes, &'a History)> + use<'a> {
        // One look-up for one key, where a range would take two.
        let (one, many) = match range {
            KeyRange::One(key) => (self.keys.get_key_value(key), None),
            _ => (None, Some(self.keys.range::<_, [u8]>(range.bounds()))),
        };
        one.into_iter().chain(iter::once(many).flatten().flatten())
    }

    /// The place of the first change at this revision or after it, in the list.
    fn first_change(&self, revision: Revision) -> usize {
        let side = |change: &Change| match change.at.revision < revision {
            true => Ordering::Less,
            false => Ordering::Greater,
        };
        self.changes.binary_search_by(side).unwrap_or_else(|place| place)
    }

    /// What `key` holds now.
    fn head(&self, key: &[u8]) -> Option<Found<'_>> {
        let (key, history) = self.keys.get_key_value(key)?;
        let (at, live) = history.head()?;
        Some(Found { key, at, live })
    }

    /// The revision that a read means, where `newest` can be read.
    fn readable(&self, asked: i64, newest: Revision) -> Result<Revision, ApiError> {
        match Revision(asked) {
            revision if revision > newest => Err(ApiError::FutureRevision),
            revision if revision <= Revision(0) => Ok(newest),
            revision if revision < self.compacted => Err(ApiError::Compacted),
            revision => Ok(revision),
        }
    }

    /// What a transaction asks of a read before it begins: stricter than the read itself, which takes a negative revision
    /// for the newest (etcd, `checkRange`).
    fn check_range(&self, request: &RangeRequest) -> Result<(), ApiError> {
        match Revision(request.revision) {
            Revision(0) => Ok(()),
            revision if revision > self.revision => Err(ApiError::FutureRevision),
            revision if revision < self.compacted => Err(ApiError::Compacted),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Copy)]
struct Found<'a> {
    key: &'a Bytes,
    at: Position,
    live: &'a Live,
}

impl Store {
    /// A header with the newest revision.
    pub(crate) fn header(&self) -> Option<ResponseHeader> {
        header(self.revision)
    }
}

/// A header with its revision; whoever serves the response adds cluster, member and term.
fn header(revision: Revision) -> Option<ResponseHeader> {
    Some(ResponseHeader { revision: revision.0, ..ResponseHeader::default() })
}

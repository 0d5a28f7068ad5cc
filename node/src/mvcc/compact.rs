//! Compaction: what was before a revision is forgotten.
//!
//! Nobody sees it from the entry on; what it takes is given back in steps, whenever there is time. So stores are equal however far
//! each has got (N-2). Source: etcd, `Compact` and `scheduleCompaction` in server/storage/mvcc.

use proto::{
    Revision,
    etcdserverpb::{CompactionRequest, CompactionResponse},
};

use super::{Change, Store, header, size};
use crate::api_error::ApiError;

/// Above it there would be few revisions left to write.
const MOST_BUMPED: Revision = Revision(i64::MAX / 2);

/// A compaction, between the one before it and itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction {
    pub(super) before: Revision,
    pub(super) at: Revision,
}

impl Store {
    /// Hides what no read and no watch from `request.revision` on can see; [`Store::forget`] gives its room back.
    ///
    /// # Errors
    /// The revision was compacted before, or is not reached yet.
    pub fn compact(&mut self, request: &CompactionRequest) -> Result<CompactionResponse, ApiError> {
        let revision = Revision(request.revision);
        if revision <= self.compacted {
            return Err(ApiError::Compacted);
        }
        if revision > self.revision {
            return Err(ApiError::FutureRevision);
        }
        // One that comes before the one before it is done is not hashed (etcd, `checkPrevCompactionCompleted`).
        if self.forgetting.is_none() {
            self.unhashed = Some(Compaction { before: self.compacted, at: revision });
        }
        self.compacted = revision;
        self.forgetting = Some(0);
        Ok(CompactionResponse { header: header(self.revision) })
    }

    /// Moves the newest revision on by as many as nobody has written, and compacts up to there: whoever has seen a revision in
    /// between hears that it is compacted, and not that another change was made in it (etcd, `modifyLatestRevision` in
    /// etcdutl/snapshot). Whether there is room for that; where there is none nothing was changed.
    pub fn bump(&mut self, by: u64) -> bool {
        let bumped = i64::try_from(by).ok().and_then(|by| self.revision.0.checked_add(by));
        let Some(bumped) = bumped.filter(|bumped| *bumped <= MOST_BUMPED.0 && by > 0) else { return false };
        self.revision = Revision(bumped);
        self.compacted = self.revision;
        self.forgetting = Some(0);
        true
    }

    /// Whether there is something to [take](Store::take_unhashed).
    pub fn is_to_be_hashed(&self) -> bool {
        self.unhashed.is_some()
    }

    /// The compaction that is to be hashed before anything of it is [forgotten](Store::forget), with the store that it left: once.
    pub fn take_unhashed(&mut self) -> Option<(Compaction, Self)> {
        self.unhashed.take().map(|compaction| (compaction, self.clone()))
    }

    /// Forgets what compactions have hidden, at most so many changes of it; says whether there is more. It walks the changes
    /// since the compaction before, never the keys that did not change.
    pub fn forget(&mut self, most: usize) -> bool {
        let Some(mut place) = self.forgetting else { return false };
        // What it had cannot be told any more.
        self.unhashed = None;
        self.gone = self.compacted;
        for _ in 0..most {
            let next = self.changes.get(place).filter(|change| change.at.revision <= self.compacted).cloned();
            let Some(change) = next else {
                self.forgetting = None;
                return false;
            };
            self.forget_before(&change);
            match self.is_kept(&change) {
                true => place += 1,
                false if place == 0 => drop(self.changes.pop_front()),
                false => drop(self.changes.remove(place)),
            }
        }
        self.forgetting = Some(place);
        true
    }

    fn forget_before(&mut self, change: &Change) {
        let Some(history) = self.keys.get_mut(&change.key) else { return };
        self.records_bytes -= history.forget(self.compacted).map(|record| size::of_change(&record)).sum::<u64>();
        if history.is_empty() {
            self.records_bytes -= size::of_key(&change.key);
            self.keys.remove(&change.key);
        }
    }

    /// Whether a watch can still be told of it.
    pub(super) fn is_kept(&self, change: &Change) -> bool {
        let is_last = || {
            let history = self.keys.get(&change.key)?;
            history.kept(self.compacted).first().map(|record| record.at == change.at)
        };
        change.at.revision > self.compacted || (change.at.revision == self.compacted && is_last() == Some(true))
    }
}

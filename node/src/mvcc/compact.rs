//! Compaction: what was before a revision is forgotten.
//!
//! Source: etcd, `Compact` in server/storage/mvcc/kvstore.go.

use std::mem;

use proto::{
    Revision,
    etcdserverpb::{CompactionRequest, CompactionResponse},
};

use super::{Store, header, size};
use crate::api_error::ApiError;

impl Store {
    /// Forgets what no read and no watch from `request.revision` on can see. It walks the changes since the last compaction,
    /// never the keys that did not change.
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
        self.compacted = revision;
        self.forget(revision);
        Ok(CompactionResponse { header: header(self.revision) })
    }

    fn forget(&mut self, revision: Revision) {
        let until = self.first_change(Revision(revision.0 + 1));
        let later = self.changes.split_off(until);
        let walked = mem::replace(&mut self.changes, later);
        // Newest first, so that what stays goes back in front in order.
        for change in walked.into_iter().rev() {
            let Some(history) = self.keys.get_mut(&change.key) else { continue };
            self.records_bytes -= history.compact(revision).map(|record| size::of_change(&record)).sum::<u64>();
            if history.is_empty() {
                self.records_bytes -= size::of_key(&change.key);
                self.keys.remove(&change.key);
            } else if change.at.revision == revision && history.get(change.at).is_some() {
                self.changes.push_front(change);
            }
        }
    }
}

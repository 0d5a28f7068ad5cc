//! Compaction: what was before a revision is forgotten.
//!
//! Source: etcd, `Compact` in server/storage/mvcc/kvstore.go.

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
        let until = self.changes.partition_point(|change| change.at.revision <= revision);
        let walked: Vec<_> = self.changes.drain(..until).collect();
        // Newest first, so that what stays goes back in front in order.
        for change in walked.into_iter().rev() {
            let Some(history) = self.keys.get_mut(&change.key) else { continue };
            self.records_bytes -= history.compact(revision).map(|record| size::of(&change.key, &record)).sum::<u64>();
            if history.is_empty() {
                self.keys.remove(&change.key);
            } else if change.at.revision == revision && history.get(change.at).is_some() {
                self.changes.push_front(change);
            }
        }
    }
}

//! Hashes of all keys, one after the other; and those of the last compactions, which this process remembers.

use std::sync::{Mutex, PoisonError};

use proto::etcdserverpb::HashKvResponse;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::Machine;
use crate::mvcc::CompactionHashes;

/// What is known of hashes.
#[derive(Debug)]
pub(super) struct Hashes {
    turn: Semaphore,
    of_compactions: Mutex<CompactionHashes>,
}

impl Default for Hashes {
    fn default() -> Self {
        Self { turn: Semaphore::new(1), of_compactions: Mutex::default() }
    }
}

impl Machine {
    /// One hash of all keys at a time: each keeps a processor busy for as long as it takes, and a list of all changes in memory.
    /// The others wait for their turn.
    pub async fn turn_to_hash(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody closes it.
        self.shared.hashes.turn.acquire().await.ok()
    }

    /// The hash of the compaction at this revision, as it was when it was made; a restart forgets it (etcd, `HashByRev`).
    pub fn hash_of_compaction(&self, revision: i64) -> Option<HashKvResponse> {
        let of_compactions = &self.shared.hashes.of_compactions;
        let hash = of_compactions.lock().unwrap_or_else(PoisonError::into_inner).at(revision)?;
        Some(HashKvResponse { header: self.read(|state| state.keys.header()), ..hash })
    }

    /// Hashes the last compaction, where nothing of it is forgotten yet.
    pub(super) fn hash_compaction(&self) {
        let Some((compaction, keys)) = self.write().keys.take_unhashed() else { return };
        let hash = keys.hash_compaction(compaction);
        // The store goes first: what it shares with the machine's would be copied where it is forgotten.
        drop(keys);
        tracing::info!(
            hash = hash.hash,
            revision = hash.hash_revision,
            compact_revision = hash.compact_revision,
            "storing new hash"
        );
        self.shared.hashes.of_compactions.lock().unwrap_or_else(PoisonError::into_inner).add(hash);
    }
}

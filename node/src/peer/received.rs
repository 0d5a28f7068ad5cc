//! How much has come in from each member, for `/metrics`: whoever waits for a member sees it take in the log or a snapshot.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use proto::MemberId;

/// Bytes of log entries and snapshots by sender, since this process started. Every clone is the same.
#[derive(Clone, Debug, Default)]
pub struct Received {
    by_member: Arc<Mutex<BTreeMap<MemberId, Arc<AtomicU64>>>>,
}

impl Received {
    /// The counter of one sender.
    pub(super) fn from(&self, member: MemberId) -> Arc<AtomicU64> {
        self.by_member.lock().unwrap_or_else(PoisonError::into_inner).entry(member).or_default().clone()
    }

    /// All that have sent anything.
    pub fn bytes(&self) -> Vec<(MemberId, u64)> {
        let counters = self.by_member.lock().unwrap_or_else(PoisonError::into_inner);
        counters.iter().map(|(member, bytes)| (*member, bytes.load(Ordering::Relaxed))).collect()
    }
}

//! What a member counts of its own part in the group, for `/metrics`.

use std::{sync::Arc, time::Duration};

use consensus::RaftStatus;
use instruments::{Counter, Histogram, doubling};
use tokio::sync::watch;

use super::Shared;

/// Since this process started.
#[derive(Debug, Default)]
pub struct Counts {
    /// How often there was another leader, or one again.
    pub leader_changes: Counter,
    /// Proposals of this member of which nobody knows in time what came, and those as a leader that it was no more.
    pub proposals_failed: Counter,
    /// Reads of this member for which a leader did not answer in time.
    pub slow_read_indexes: Counter,
    /// Reads of this member for which there was no leader.
    pub read_indexes_failed: Counter,
    /// Leases that were renewed, as the leader.
    pub leases_renewed: Counter,
    /// Leases that were to be ended, as the leader.
    pub leases_expired: Counter,
    /// How long hashes took.
    pub hashes: Hashes,
}

/// etcd's `hashRevSec`, and `hashSec`.
static HASH_BOUNDS: [Duration; 15] = doubling(Duration::from_millis(10));

#[derive(Debug)]
pub struct Hashes {
    /// Of the keys at a revision.
    pub at_revision: Histogram,
    /// Of all that is stored.
    pub whole: Histogram,
}

impl Default for Hashes {
    fn default() -> Self {
        Self { at_revision: Histogram::new(&HASH_BOUNDS), whole: Histogram::new(&HASH_BOUNDS) }
    }
}

/// Counts leaders for as long as raft runs.
pub(super) async fn count_leaders(shared: Arc<Shared>) {
    count(shared.group.raft_status(), &shared.counts.leader_changes).await;
}

/// As etcd counts them: no leader is none, whoever led before (`leaderChanges` in server/etcdserver/raft.go).
async fn count(mut raft_status: watch::Receiver<RaftStatus>, changes: &Counter) {
    let mut leader = None;
    loop {
        let now = *raft_status.borrow_and_update();
        if now.leader.is_some() && now.leader != leader {
            changes.inc();
        }
        leader = now.leader;
        if !now.is_running || raft_status.changed().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_leader_that_is_lost_and_found_is_another() {
        let status = |leader, term| RaftStatus { leader, term, is_running: true, ..RaftStatus::default() };
        let (sender, receiver) = watch::channel(status(None, 0));
        let changes = Arc::new(Counter::default());
        let counted = changes.clone();
        let counting = tokio::spawn(async move { count(receiver, &counted).await });
        for (leader, term, expected) in
            [(Some(1), 1, 1), (Some(1), 2, 1), (Some(2), 3, 2), (None, 3, 2), (Some(2), 3, 3), (None, 4, 3)]
        {
            sender.send(status(leader, term)).unwrap();
            tokio::task::yield_now().await;
            assert_eq!(changes.get(), expected, "{leader:?} {term}");
        }
        sender.send(RaftStatus::default()).unwrap();
        counting.await.unwrap();
    }
}

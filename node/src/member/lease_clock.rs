//! When leases end: known to the leader alone, on a clock that counts the time a machine sleeps.
//!
//! A new leader gives each lease what the log says that it has left. With the feature `LeaseCheckpoint` a leader writes
//! that down now and then, so that a lease does not begin anew with every leader. Source: etcd, server/lease/lessor.go.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use proto::{
    LeaseId,
    etcdserverpb::{LeaseCheckpoint, LeaseCheckpointRequest, LeaseRevokeRequest},
};
use tokio::time::sleep;
use tonic::Status;

use super::Shared;
use crate::{
    entry::EntryKind,
    features::{LEASE_CHECKPOINT, Registry},
    state::State,
};

/// How often the clock is looked at (etcd: 500 ms).
const LOOK: Duration = Duration::from_millis(250);
/// What a lease has left is written down at the latest after this (etcd, `defaultLeaseCheckpointInterval`), and after half
/// of what it was granted for: one that is kept alive as clients do it, three times in its life, never needs it.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(300);
/// As many leases are ended at a look, and as many written down (etcd, `leaseRevokeRate`, `maxLeaseCheckpointBatchSize`).
const MAX_LEASES_A_LOOK: usize = 1000;

/// The times, while this member leads.
#[derive(Debug, Default)]
pub(super) struct LeaseClock {
    leases: Mutex<Option<BTreeMap<LeaseId, Times>>>,
}

/// This member does not lead, or has not yet applied all that leaders before it have written of leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the leader has not taken up the leases yet")]
pub(super) struct Stopped;

impl From<Stopped> for Status {
    fn from(stopped: Stopped) -> Self {
        Self::unavailable(stopped.to_string())
    }
}

#[derive(Clone, Copy, Debug)]
struct Times {
    ends: Duration,
    /// When it was given its time, or that was last written down.
    noted: Duration,
}

/// Since the machine was started, sleep included.
fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(now.tv_sec.try_into().unwrap_or_default(), now.tv_nsec.try_into().unwrap_or_default())
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.try_into().unwrap_or_default())
}

impl LeaseClock {
    fn times(&self) -> MutexGuard<'_, Option<BTreeMap<LeaseId, Times>>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another member leads, or nobody.
    pub(super) fn stop(&self) {
        *self.times() = None;
    }

    /// Gives a lease so much time from now. Whether it has not ended meanwhile.
    pub(super) fn renew(&self, lease: LeaseId, granted_s: i64) -> Result<bool, Stopped> {
        let now = now();
        let mut times = self.times();
        let times = times.as_mut().ok_or(Stopped)?;
        let lives = times.get(&lease).is_none_or(|times| times.ends > now);
        if lives {
            times.insert(lease, Times { ends: now + seconds(granted_s), noted: now });
        }
        Ok(lives)
    }

    /// The seconds that a lease has left. One that was not seen yet is so young that it has all of them.
    pub(super) fn left(&self, lease: LeaseId, granted_s: i64) -> Result<i64, Stopped> {
        let times = self.times();
        let times = times.as_ref().ok_or(Stopped)?.get(&lease);
        let left = |times: &Times| times.ends.saturating_sub(now()).as_secs().try_into().unwrap_or(i64::MAX);
        Ok(times.map_or(granted_s, left))
    }

    /// Takes in leases that are new, forgets those that are gone.
    fn follow(&self, state: &State, registry: &Registry, grace: Duration) {
        let now = now();
        let mut times = self.times();
        let is_first = times.is_none();
        let known = times.get_or_insert_default();
        known.retain(|lease, _| state.keys.leases().get(*lease).is_some());
        for (lease, _) in state.keys.leases().iter() {
            let left = || state.lease_left_s(lease, registry).unwrap_or_default();
            // A client could reach no leader for a while, and could not renew it then.
            let more = if is_first { grace } else { Duration::ZERO };
            known.entry(lease).or_insert_with(|| Times { ends: now + seconds(left()) + more, noted: now });
        }
    }

    fn ended(&self) -> Vec<LeaseId> {
        let now = now();
        let times = self.times();
        let ended = times.iter().flatten().filter(|(_, times)| times.ends <= now);
        ended.map(|(lease, _)| *lease).take(MAX_LEASES_A_LOOK).collect()
    }

    /// What is to be written down now.
    fn due(&self, state: &State) -> Vec<LeaseCheckpoint> {
        let now = now();
        let mut due = Vec::new();
        for (lease, times) in self.times().iter_mut().flatten() {
            let granted = state.keys.leases().get(*lease).map_or(Duration::ZERO, |lease| seconds(lease.granted_s()));
            if due.len() < MAX_LEASES_A_LOOK
                && now >= times.noted + CHECKPOINT_INTERVAL.min(granted / 2)
                && times.ends > now
            {
                times.noted = now;
                let remaining_ttl = (times.ends - now).as_secs().max(1) as i64;
                due.push(LeaseCheckpoint { id: lease.0, remaining_ttl });
            }
        }
        due
    }
}

/// Ends leases and writes down what they have left, as long as this member leads.
pub(super) async fn run(shared: &Arc<Shared>) {
    loop {
        let due = shared.machine.read(|state| {
            let registry = shared.machine.registry();
            shared.clock.follow(state, registry, shared.limits.election);
            let is_on = state.cluster.is_enabled(LEASE_CHECKPOINT, registry);
            if is_on { shared.clock.due(state) } else { Vec::new() }
        });
        if !due.is_empty() {
            let checkpoint = EntryKind::LeaseCheckpoint(LeaseCheckpointRequest { checkpoints: due });
            if let Err(error) = shared.propose(checkpoint.into()).await {
                tracing::warn!(%error, "what leases have left was not written down");
            }
        }
        for lease in shared.clock.ended() {
            // One at a time would be slow with many; each is its own proposal, and none waits for another.
            let shared = shared.clone();
            tokio::spawn(async move {
                let revoke = EntryKind::LeaseRevoke(LeaseRevokeRequest { id: lease.0 });
                if let Err(error) = shared.propose(revoke.into()).await {
                    tracing::debug!(%error, lease = lease.0, "a lease that has ended was not revoked");
                }
            });
        }
        sleep(LOOK).await;
    }
}

#[cfg(test)]
#[path = "lease_clock_test.rs"]
mod tests;

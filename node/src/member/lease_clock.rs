//! When leases end: known to the leader alone, on a clock that counts the time a machine sleeps.
//!
//! A new leader gives each lease what the log says that it has left. With the feature `ClusterLeaseCheckpoint` a leader writes
//! that down now and then, so that a lease does not begin anew with every leader. Source: etcd, server/lease/lessor.go.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use proto::{
    LeaseId,
    etcdserverpb::{LeaseCheckpoint, LeaseCheckpointRequest, LeaseRevokeRequest},
};
use tokio::{task::JoinSet, time::sleep};
use tonic::Status;

use super::Shared;
use crate::{
    entry::EntryKind,
    features::{LEASE_CHECKPOINT, Registry},
    host::Host,
    lease::{Lease, Leases},
    state::State,
};

/// How often the clock is looked at (etcd: 500 ms).
const LOOK: Duration = Duration::from_millis(250);
/// What a lease has left is written down at the latest after this (etcd, `defaultLeaseCheckpointInterval`), and after half
/// of what it was granted for: one that is kept alive as clients do it, three times in its life, never needs it.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(300);
/// As many leases are being ended at once, and as many written down at a look (etcd, `leaseRevokeRate`,
/// `maxLeaseCheckpointBatchSize`).
const MAX_LEASES: usize = 1000;

/// The times, while this member leads.
pub(super) struct LeaseClock {
    host: Arc<dyn Host>,
    timed: Mutex<Option<Timed>>,
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

/// The leases as they were when they were last looked at, and their times: also in order, so that a look costs what has
/// changed, however many there are.
#[derive(Debug, Default)]
struct Timed {
    leases: Leases,
    times: BTreeMap<LeaseId, Times>,
    by_end: BTreeSet<(Duration, LeaseId)>,
    by_check: BTreeSet<(Duration, LeaseId)>,
    /// Renewed before they were seen.
    unseen: BTreeSet<LeaseId>,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    ends: Duration,
    /// When what it has left is to be written down.
    check: Duration,
}

impl Times {
    fn new(now: Duration, left: Duration, granted_s: i64) -> Self {
        Self { ends: now + left, check: next_check(now, granted_s) }
    }
}

fn next_check(now: Duration, granted_s: i64) -> Duration {
    now + CHECKPOINT_INTERVAL.min(seconds(granted_s) / 2)
}

impl Timed {
    fn set(&mut self, lease: LeaseId, times: Times) {
        self.forget(lease);
        self.times.insert(lease, times);
        self.by_end.insert((times.ends, lease));
        self.by_check.insert((times.check, lease));
    }

    fn forget(&mut self, lease: LeaseId) {
        if let Some(times) = self.times.remove(&lease) {
            self.by_end.remove(&(times.ends, lease));
            self.by_check.remove(&(times.check, lease));
        }
    }

    fn end_of(&self, lease: LeaseId, granted_s: i64, now: Duration) -> Duration {
        self.times.get(&lease).map_or_else(|| now.saturating_add(seconds(granted_s)), |times| times.ends)
    }
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.try_into().unwrap_or_default())
}

impl LeaseClock {
    /// By the clock of this machine; it stands.
    pub(super) fn new(host: Arc<dyn Host>) -> Self {
        Self { host, timed: Mutex::default() }
    }

    fn now(&self) -> Duration {
        self.host.uptime()
    }

    fn timed(&self) -> MutexGuard<'_, Option<Timed>> {
        self.timed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another member leads, or nobody.
    pub(super) fn stop(&self) {
        *self.timed() = None;
    }

    /// Forgets the time of a lease whose id was granted again since the last look.
    pub(super) fn tell_apart(&self, id: LeaseId, lease: &Lease) {
        if let Some(timed) = self.timed().as_mut()
            && timed.leases.get(id).is_some_and(|seen| seen.is_of_another_grant(lease))
        {
            timed.forget(id);
        }
    }

    /// Gives a lease so much time from now. Whether it has not ended meanwhile.
    pub(super) fn renew(&self, lease: LeaseId, granted_s: i64) -> Result<bool, Stopped> {
        let now = self.now();
        let mut timed = self.timed();
        let timed = timed.as_mut().ok_or(Stopped)?;
        let lives = timed.times.get(&lease).is_none_or(|times| times.ends > now);
        if lives {
            timed.set(lease, Times::new(now, seconds(granted_s), granted_s));
            if timed.leases.get(lease).is_none() {
                timed.unseen.insert(lease);
            }
        }
        Ok(lives)
    }

    /// The whole seconds that a lease has left, rounded down as with etcd: it never has all that it was granted. One that was not
    /// seen yet is so young that it has nearly all.
    pub(super) fn left(&self, lease: LeaseId, granted_s: i64) -> Result<i64, Stopped> {
        let now = self.now();
        let timed = self.timed();
        let left = timed.as_ref().ok_or(Stopped)?.end_of(lease, granted_s, now).saturating_sub(now);
        Ok(left.saturating_sub(Duration::from_nanos(1)).as_secs().try_into().unwrap_or(i64::MAX))
    }

    /// The leases, the next to end first where that is known; of those that end together, the one first that was granted first.
    pub(super) fn in_order(&self, leases: &Leases) -> Vec<LeaseId> {
        let now = self.now();
        let mut all: Vec<_> = {
            // Not for as long as they are sorted: whoever keeps a lease alive waits for it.
            let timed = self.timed();
            let ends = |id, lease: &Lease| timed.as_ref().map(|timed| timed.end_of(id, lease.granted_s(), now));
            leases.iter().map(|(id, lease)| (ends(id, lease), lease.grant(), id)).collect()
        };
        all.sort_unstable();
        all.into_iter().map(|(.., id)| id).collect()
    }

    /// Takes in leases that are new, forgets those that are gone.
    fn follow(&self, state: &State, registry: &Registry, grace: Duration) {
        let (now, leases) = (self.now(), state.keys.leases());
        let mut timed = self.timed();
        // A client could reach no leader for a while, and could not renew it then.
        let more = if timed.is_none() { grace } else { Duration::ZERO };
        let timed = timed.get_or_insert_default();
        let before = mem::replace(&mut timed.leases, leases.clone());
        for (id, lease) in leases.changes_since(&before) {
            match lease {
                Some(_) if timed.times.contains_key(&id) => {}
                Some(lease) => {
                    let left = seconds(state.lease_left_s(id, registry).unwrap_or_default());
                    timed.set(id, Times::new(now, left + more, lease.granted_s()));
                }
                None => timed.forget(id),
            }
        }
        for lease in mem::take(&mut timed.unseen) {
            if leases.get(lease).is_none() {
                timed.forget(lease);
            }
        }
    }

    /// Those that have ended, but for those that are `under_way`.
    fn ended(&self, under_way: &BTreeSet<LeaseId>) -> Vec<LeaseId> {
        let now = self.now();
        let timed = self.timed();
        let by_end = timed.iter().flat_map(|timed| &timed.by_end).take_while(|(ends, _)| *ends <= now);
        let ended = by_end.map(|(_, lease)| *lease).filter(|lease| !under_way.contains(lease));
        ended.take(MAX_LEASES.saturating_sub(under_way.len())).collect()
    }

    /// What is to be written down now.
    fn due(&self) -> Vec<LeaseCheckpoint> {
        let now = self.now();
        let mut timed = self.timed();
        let Some(timed) = timed.as_mut() else { return Vec::new() };
        let mut due = Vec::new();
        while due.len() < MAX_LEASES
            && let Some((check, lease)) = timed.by_check.first().copied()
            && check <= now
        {
            let Some(ends) = timed.times.get(&lease).map(|times| times.ends) else { break };
            let granted_s = timed.leases.get(lease).map_or(0, Lease::granted_s);
            // One that has ended, or that was not seen yet, has its turn later, if ever.
            let next = next_check(now, granted_s).max(now + LOOK);
            timed.set(lease, Times { ends, check: next });
            if ends > now {
                let remaining_ttl = (ends - now).as_secs().max(1) as i64;
                due.push(LeaseCheckpoint { id: lease.0, remaining_ttl });
            }
        }
        due
    }
}

/// Ends leases and writes down what they have left, as long as this member leads in this term.
pub(super) async fn run(shared: &Arc<Shared>, term: u64) {
    let (mut revokes, mut under_way) = (JoinSet::new(), BTreeSet::new());
    loop {
        let (state, registry) = (shared.machine.frozen(), shared.machine.registry());
        shared.clock.follow(&state, registry, shared.limits.election);
        let due = match state.cluster.is_enabled(LEASE_CHECKPOINT, registry) {
            true => shared.clock.due(),
            false => Vec::new(),
        };
        drop(state);
        if !due.is_empty() {
            let checkpoint = EntryKind::LeaseCheckpoint(LeaseCheckpointRequest { checkpoints: due });
            if let Err(error) = shared.propose_as_leader(term, checkpoint).await {
                tracing::warn!(%error, "what leases have left was not written down");
            }
        }
        while let Some(done) = revokes.try_join_next() {
            under_way.retain(|lease| done.as_ref().is_ok_and(|done| done != lease));
        }
        for lease in shared.clock.ended(&under_way) {
            under_way.insert(lease);
            // One at a time would be slow with many; each is its own proposal, and none waits for another.
            revokes.spawn(revoke(shared.clone(), term, lease));
        }
        sleep(LOOK).await;
    }
}

async fn revoke(shared: Arc<Shared>, term: u64, lease: LeaseId) -> LeaseId {
    tracing::debug!(lease = lease.0, "a lease has ended");
    shared.counts.leases_expired.inc();
    let revoke = EntryKind::LeaseRevoke(LeaseRevokeRequest { id: lease.0 });
    if let Err(error) = shared.propose_as_leader(term, revoke).await {
        tracing::debug!(%error, lease = lease.0, "a lease that has ended was not revoked");
    }
    lease
}

#[cfg(test)]
#[path = "lease_clock_test.rs"]
mod tests;

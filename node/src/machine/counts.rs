//! What this member has applied since it started, counted for `/metrics` as etcd counts it (server/storage/mvcc/metrics_txn.go,
//! server/lease/metrics.go, server/etcdserver/txn/metrics.go), and what took too long.
//!
//! It is the member's own: a state that is stored or sent has nothing of it. While the state is locked a batch is counted in a value of
//! its own; what others read is added to once the lock is gone.

use std::{array, sync::Arc, time::Duration};

use instruments::{Counter, Gauge, Histogram, Reading, doubling};
use proto::{LeaseId, LogIndex};
use tokio::time::Instant;

use super::Outcome;
use crate::{
    cluster::entry::Entry as ClusterEntry,
    entry::EntryKind,
    mvcc::Operations,
    slow::Slow,
    state::{Applied, State},
};

/// How etcd names what is applied (`op` in server/etcdserver/apply/uber_applier.go, `applyV2` and `applyClusterEntry`); the last but one is KEP-4647's, the last our own.
const OPS: [&str; 13] = [
    "Put",
    "DeleteRange",
    "Txn",
    "Compaction",
    "LeaseGrant",
    "LeaseRevoke",
    "LeaseCheckpoint",
    "Alarm",
    "ClusterVersionSet",
    "ClusterMemberAttrSet",
    "DowngradeInfoSet",
    "ClusterFeatureGateSet",
    "CounterAdd",
];

fn op(what: &EntryKind) -> usize {
    match what {
        EntryKind::Put(_) => 0,
        EntryKind::DeleteRange(_) => 1,
        EntryKind::Txn(_) => 2,
        EntryKind::Compact(_) => 3,
        EntryKind::LeaseGrant(_) => 4,
        EntryKind::LeaseRevoke(_) => 5,
        EntryKind::LeaseCheckpoint(_) => 6,
        EntryKind::Alarm(_) => 7,
        EntryKind::CounterAdd(_) => 12,
        EntryKind::Cluster(ClusterEntry::SetVersion { .. }) => 8,
        EntryKind::Cluster(
            ClusterEntry::Bootstrap { .. } | ClusterEntry::Publish { .. } | ClusterEntry::Move { .. },
        ) => 9,
        EntryKind::Cluster(ClusterEntry::Downgrade { .. }) => 10,
        EntryKind::Cluster(ClusterEntry::Reset { .. } | ClusterEntry::Decide { .. }) => 11,
    }
}

/// etcd's `applySec` and `rangeSec`.
pub(crate) static DURATION_BOUNDS: [Duration; 20] = doubling(Duration::from_micros(100));
/// From a second to three months (etcd, `leaseTotalTTLs`).
static TTL_BOUNDS: [Duration; 24] = doubling(Duration::from_secs(1));

/// Since this process started.
#[derive(Debug)]
pub struct Counts {
    pub puts: Counter,
    /// Bytes of their keys and values.
    pub put_bytes: Counter,
    pub deletes: Counter,
    pub ranges: Counter,
    /// Of more than one operation.
    pub txns: Counter,
    pub leases_granted: Counter,
    pub leases_revoked: Counter,
    /// The seconds that they were granted for.
    pub ttls: Histogram,
    /// What took too long to be applied, or to be read.
    pub slow: Counter,
    /// Snapshots that are taking the place of the state.
    pub snapshots_applied_now: Arc<Gauge>,
    /// By what it was, and whether it was refused.
    durations: [[Histogram; 2]; OPS.len()],
    pub(crate) limit: Slow,
}

impl Counts {
    /// With how long it may take.
    pub(super) fn new(limit: Duration) -> Self {
        let duration = || Histogram::new(&DURATION_BOUNDS);
        Self {
            puts: Counter::default(),
            put_bytes: Counter::default(),
            deletes: Counter::default(),
            ranges: Counter::default(),
            txns: Counter::default(),
            leases_granted: Counter::default(),
            leases_revoked: Counter::default(),
            ttls: Histogram::in_seconds(&TTL_BOUNDS),
            slow: Counter::default(),
            snapshots_applied_now: Arc::default(),
            durations: array::from_fn(|_| [duration(), duration()]),
            limit: Slow::after(limit),
        }
    }

    /// How long entries took, by what they were and whether they were performed, of all that there were.
    pub fn durations(&self) -> impl Iterator<Item = (&'static str, bool, Reading)> {
        let both =
            OPS.iter().zip(&self.durations).flat_map(|(op, both)| both.iter().zip([true, false]).map(|of| (*op, of)));
        both.map(|(op, (took, is_success))| (op, is_success, took.read())).filter(|(.., took)| took.count > 0)
    }

    /// What a transaction, or one operation by itself, has read and written.
    pub fn note(&self, operations: Operations) {
        self.add(operations, u64::from(operations.is_txn()));
    }

    fn add(&self, Operations { ranges, puts, deletes, put_bytes }: Operations, txns: u64) {
        for (counter, more) in [
            (&self.ranges, ranges),
            (&self.puts, puts),
            (&self.deletes, deletes),
            (&self.put_bytes, put_bytes),
            (&self.txns, txns),
        ] {
            if more > 0 {
                counter.add(more);
            }
        }
    }

    /// Something took too long: counted, and said in etcd's words (`warnOfExpensiveGenericRequest` in server/etcdserver/txn/util.go).
    /// What was asked is told without keys and values.
    pub fn note_slow(&self, took: Duration, prefix: &str, request: &str, response: &str) {
        self.slow.inc();
        let Some(not_said) = self.limit.may_say() else { return };
        tracing::warn!(
            ?took,
            expected_duration = ?self.limit.limit(),
            prefix,
            request,
            response,
            not_said = (not_said > 0).then_some(not_said),
            "apply request took too long"
        );
    }

    pub(super) fn note_batch(&self, batch: Batch) {
        let took = batch.began.elapsed().saturating_sub(batch.alone.iter().map(|alone| alone.took).sum());
        // Of what takes microseconds the clock would be no small part: it is read for all of them together.
        let count: u32 = batch.counts.iter().flatten().sum();
        let each = took.checked_div(count).unwrap_or_default();
        let ops = batch.counts.iter().zip(&self.durations).flat_map(|(counts, durations)| counts.iter().zip(durations));
        for (count, durations) in ops.filter(|(count, _)| **count > 0) {
            durations.observe_each(each, u64::from(*count));
        }
        if self.limit.is_slow(each) {
            self.note_slow(each, "", &format!("{count} entries up to {}", batch.last), "");
        }
        for Alone { op, is_success, took } in batch.alone {
            self.durations[op][usize::from(!is_success)].observe(took);
            if self.limit.is_slow(took) {
                self.note_slow(took, "", OPS[op], "");
            }
        }
        let Tally { operations, txns, granted, revoked, ttls } = batch.tally;
        self.add(operations, txns);
        self.leases_granted.add(granted);
        self.leases_revoked.add(revoked);
        ttls.into_iter().for_each(|ttl| self.ttls.observe(ttl));
    }
}

/// What an entry was, for as long as it is applied.
pub(super) struct Begun {
    op: usize,
    operations: Operations,
    ttl_s: i64,
    /// When, where that is looked at.
    at: Option<Instant>,
}

/// One whose time was taken by itself.
struct Alone {
    op: usize,
    is_success: bool,
    took: Duration,
}

#[derive(Default)]
struct Tally {
    operations: Operations,
    /// How many of them were transactions.
    txns: u64,
    granted: u64,
    revoked: u64,
    ttls: Vec<Duration>,
}

/// Entries that are applied together.
pub(super) struct Batch {
    began: Instant,
    tally: Tally,
    /// How many there were, by what they were and whether they were refused.
    counts: [[u32; 2]; OPS.len()],
    alone: Vec<Alone>,
    last: LogIndex,
}

impl Batch {
    pub(super) fn begin() -> Self {
        let (began, counts, last) = (Instant::now(), [[0; 2]; OPS.len()], LogIndex(0));
        Self { began, tally: Tally::default(), counts, alone: Vec::new(), last }
    }

    /// Before an entry is applied.
    pub(super) fn one(what: &EntryKind, state: &State) -> Begun {
        let mut operations = Operations::default();
        let mut ttl_s = 0;
        match what {
            EntryKind::Put(put) => operations.note_put(put),
            EntryKind::CounterAdd(_) => operations.puts = 1,
            EntryKind::DeleteRange(delete) => operations.note_delete(delete),
            EntryKind::LeaseRevoke(revoke) => {
                operations.deletes =
                    state.keys.leases().get(LeaseId(revoke.id)).map_or(0, |lease| lease.key_count() as u64);
            }
            EntryKind::LeaseGrant(grant) => ttl_s = grant.ttl,
            _ => {}
        }
        Begun { op: op(what), operations, ttl_s, at: what.may_take_long().then(Instant::now) }
    }

    /// After it.
    pub(super) fn note(&mut self, index: LogIndex, begun: Begun, outcome: &Outcome) {
        let Begun { op, operations, ttl_s, at } = begun;
        self.last = index;
        match at {
            Some(at) => self.alone.push(Alone { op, is_success: outcome.is_ok(), took: at.elapsed() }),
            None => self.counts[op][usize::from(outcome.is_err())] += 1,
        }
        match outcome {
            Ok(Applied::Txn(performed)) => {
                performed.operations().into_iter().for_each(|operations| self.tally.add(operations))
            }
            Ok(Applied::LeaseGrant(_)) => {
                self.tally.granted += 1;
                self.tally.ttls.push(Duration::from_secs(ttl_s.unsigned_abs()));
            }
            Ok(applied) => {
                self.tally.revoked += u64::from(matches!(applied, Applied::LeaseRevoke(_)));
                self.tally.add(operations);
            }
            Err(_) => {}
        }
    }
}

impl Tally {
    fn add(&mut self, operations: Operations) {
        self.txns += u64::from(operations.is_txn());
        self.operations.add(operations);
    }
}

#[cfg(test)]
mod tests {
    use proto::etcdserverpb::{DeleteRangeRequest, PutRequest};

    use super::*;
    use crate::api_error::ApiError;

    fn sum(counts: &Counts, op: &str, is_success: bool) -> u64 {
        let of = counts.durations().find(|(name, success, _)| (*name, *success) == (op, is_success));
        of.map_or(0, |(.., took)| took.count)
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_is_measured_by_itself_and_the_rest_together() {
        let (counts, state) = (Counts::new(Duration::from_millis(100)), State::default());
        let mut batch = Batch::begin();
        let refused = Err(crate::state::Refusal::Request(ApiError::LeaseNotFound));
        let put = EntryKind::Put(PutRequest { key: vec![1], value: vec![2, 3], ..PutRequest::default() });
        for outcome in [Ok(Applied::Put(Default::default())), refused] {
            let begun = Batch::one(&put, &state);
            tokio::time::advance(Duration::from_millis(50)).await;
            batch.note(LogIndex(7), begun, &outcome);
        }
        let begun = Batch::one(&EntryKind::DeleteRange(DeleteRangeRequest::default()), &state);
        tokio::time::advance(Duration::from_millis(101)).await;
        batch.note(LogIndex(8), begun, &Ok(Applied::DeleteRange(Default::default())));
        counts.note_batch(batch);
        assert_eq!((counts.puts.get(), counts.put_bytes.get(), counts.deletes.get()), (1, 3, 1), "one was refused");
        assert_eq!(
            (sum(&counts, "Put", true), sum(&counts, "Put", false), sum(&counts, "DeleteRange", true)),
            (1, 1, 1)
        );
        let sums: Vec<_> = counts.durations().map(|(.., took)| took.sum.as_millis()).collect();
        assert_eq!(sums, [50, 50, 101]);
        assert_eq!(counts.slow.get(), 1, "puts took half as long each");
    }
}

//! What goes between this member and each other one, for `/metrics`. Whoever waits for a member sees there that it takes in the log
//! or a snapshot.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use instruments::{Counter, Gauge, Histogram, doubling};
use proto::MemberId;
use tokio::time::Instant;

/// As etcd measures them (`rttSec` in server/etcdserver/api/rafthttp/metrics.go).
static ROUND_TRIP_BOUNDS: [Duration; 16] = doubling(Duration::from_micros(100));

/// What went to and came from each member since this process started. Every clone is the same.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    by_member: Arc<Mutex<BTreeMap<MemberId, Arc<PeerTraffic>>>>,
}

/// Of one member. Bytes are those of log entries, snapshots, votes and proposals.
#[derive(Debug)]
pub struct PeerTraffic {
    pub sent_bytes: Counter,
    /// Messages that did not get there, or whose answer did not come back.
    pub sent_failures: Counter,
    pub received_bytes: Counter,
    /// Streams that broke while something came in.
    pub received_failures: Counter,
    /// Heartbeats of this leader that did not get there, or whose answer did not come back.
    pub heartbeat_failures: Counter,
    /// Streams of raft's that are open between the two: this leader's for heartbeats, and those that the other has opened.
    pub streams: Arc<Gauge>,
    /// From when a heartbeat leaves until its answer is here.
    pub round_trips: Histogram,
}

impl Traffic {
    /// That of one member; from now on it is among all.
    pub(crate) fn of(&self, member: MemberId) -> Arc<PeerTraffic> {
        self.by_member.lock().unwrap_or_else(PoisonError::into_inner).entry(member).or_default().clone()
    }

    /// All that were called or have called.
    pub fn all(&self) -> Vec<(MemberId, Arc<PeerTraffic>)> {
        let by_member = self.by_member.lock().unwrap_or_else(PoisonError::into_inner);
        by_member.iter().map(|(member, traffic)| (*member, traffic.clone())).collect()
    }
}

impl Default for PeerTraffic {
    fn default() -> Self {
        Self {
            sent_bytes: Counter::default(),
            sent_failures: Counter::default(),
            received_bytes: Counter::default(),
            received_failures: Counter::default(),
            heartbeat_failures: Counter::default(),
            streams: Arc::default(),
            round_trips: Histogram::new(&ROUND_TRIP_BOUNDS),
        }
    }
}

/// One message of a stream at a time, while its answer is awaited. Messages are answered in their order.
#[derive(Debug)]
struct Awaited {
    began: Instant,
    /// Which message it is, from 1; 0: none.
    number: AtomicU64,
    /// When it left, since the beginning.
    left_ns: AtomicU64,
}

/// The side that sends.
#[derive(Debug)]
pub(super) struct Leaving {
    awaited: Arc<Awaited>,
    sent: u64,
}

/// The side that is answered.
#[derive(Debug)]
pub(super) struct Returning {
    awaited: Arc<Awaited>,
    answered: u64,
}

/// Both sides of a new stream.
pub(super) fn round_trips() -> (Leaving, Returning) {
    let awaited = Awaited { began: Instant::now(), number: AtomicU64::new(0), left_ns: AtomicU64::new(0) };
    let awaited = Arc::new(awaited);
    (Leaving { awaited: awaited.clone(), sent: 0 }, Returning { awaited, answered: 0 })
}

impl Leaving {
    /// A message leaves.
    pub(super) fn note(&mut self, now: Instant) {
        self.sent += 1;
        if self.awaited.number.load(Ordering::Acquire) == 0 {
            let left = now.saturating_duration_since(self.awaited.began);
            self.awaited.left_ns.store(left.as_nanos() as u64, Ordering::Relaxed);
            self.awaited.number.store(self.sent, Ordering::Release);
        }
    }
}

impl Returning {
    /// An answer is here; how long it took, where its message was the one that was awaited.
    pub(super) fn note(&mut self, now: Instant) -> Option<Duration> {
        self.answered += 1;
        if self.awaited.number.load(Ordering::Acquire) != self.answered {
            return None;
        }
        let left = Duration::from_nanos(self.awaited.left_ns.load(Ordering::Relaxed));
        self.awaited.number.store(0, Ordering::Release);
        Some(now.saturating_duration_since(self.awaited.began + left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_measured_by_its_own_answer() {
        let (mut leaving, mut returning) = round_trips();
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        leaving.note(begun);
        // Not measured: another one is under way.
        leaving.note(begun + second);
        assert_eq!(returning.note(begun + 2 * second), Some(2 * second));
        leaving.note(begun + 3 * second);
        assert_eq!(returning.note(begun + 4 * second), None);
        assert_eq!(returning.note(begun + 8 * second), Some(5 * second));
    }
}

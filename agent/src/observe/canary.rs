//! A client of the agent's own (`strategy.canary`): while a run goes on it reads through the cluster, one linearizable read after the other,
//! and goes on through another member where one fails, as clients do. So a run says how available the cluster was.
//!
//! It reads and never writes: a read goes through a quorum, too, and leaves nothing behind.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use serde::{Deserialize, Serialize};
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};
use tonic::Code;

use super::{Observer, cluster::Connections};
use crate::calendar::rfc3339;

/// What it waits between two reads.
const EVERY: Duration = Duration::from_millis(100);
/// How long one may take; a client would not wait for longer either.
const PATIENCE: Duration = Duration::from_secs(1);

/// What it was told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Availability {
    /// Reads that were answered.
    pub reads: u64,
    /// Attempts that were not, and were made again through another member.
    pub failed: u64,
    /// The longest time between two answers.
    pub longest_gap_ms: u64,
    /// When that began.
    pub gap_since: Option<String>,
}

/// One at work.
#[derive(Debug)]
pub struct Canary {
    seen: Arc<Mutex<Seen>>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Seen {
    reads: u64,
    failed: u64,
    gap: (Duration, Option<SystemTime>),
    /// When the last answer came, or the first read was made.
    last: (Instant, SystemTime),
}

impl Observer {
    /// Lets one go. It must be clear which cluster this is.
    pub fn canary(&self) -> Canary {
        let seen = Arc::new(Mutex::new(Seen::new((Instant::now(), SystemTime::now()))));
        let task = tokio::spawn(fly(Arc::clone(&self.connections), Arc::clone(&seen)));
        Canary { seen, task: task.abort_handle() }
    }
}

impl Canary {
    /// Ends it. What is not answered by now counts as long as it was not.
    pub fn end(self) -> Availability {
        self.task.abort();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.wait_until(Instant::now());
        seen.availability()
    }
}

async fn fly(connections: Arc<Connections>, seen: Arc<Mutex<Seen>>) {
    for turn in 0.. {
        let routes = connections.access.directory().routes(None);
        let Some(address) = routes.get(turn % routes.len().max(1)) else {
            sleep(EVERY).await;
            continue;
        };
        // Through the same member as long as it answers.
        while connections.answers(address).await {
            let now = (Instant::now(), SystemTime::now());
            seen.lock().unwrap_or_else(PoisonError::into_inner).answered(now);
            sleep(EVERY).await;
        }
        seen.lock().unwrap_or_else(PoisonError::into_inner).failed += 1;
        sleep(EVERY / 10).await;
    }
}

impl Connections {
    async fn answers(&self, address: &str) -> bool {
        match timeout(PATIENCE, self.access.linearizable(address, &self.key)).await {
            Ok(Ok(_)) => true,
            // The quorum was asked before it was looked who asks.
            Ok(Err(error)) => error.code() == Some(Code::PermissionDenied),
            Err(_) => false,
        }
    }
}

impl Seen {
    fn new(last: (Instant, SystemTime)) -> Self {
        Self { reads: 0, failed: 0, gap: (Duration::ZERO, None), last }
    }

    fn answered(&mut self, now: (Instant, SystemTime)) {
        self.wait_until(now.0);
        self.reads += 1;
        self.last = now;
    }

    fn wait_until(&mut self, now: Instant) {
        let waited = now.saturating_duration_since(self.last.0);
        if waited > self.gap.0 {
            self.gap = (waited, Some(self.last.1));
        }
    }

    fn availability(&self) -> Availability {
        let (gap, since) = self.gap;
        let longest_gap_ms = u64::try_from(gap.as_millis()).unwrap_or(u64::MAX);
        Availability { reads: self.reads, failed: self.failed, longest_gap_ms, gap_since: since.map(rfc3339) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_without_an_answer_is_kept_with_its_beginning() {
        let begun = Instant::now();
        let at =
            |millis| (begun + Duration::from_millis(millis), SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
        let mut seen = Seen::new(at(0));
        for millis in [100, 200, 1_500, 1_600] {
            seen.answered(at(millis));
        }
        seen.failed = 2;
        let found = seen.availability();
        assert_eq!((found.reads, found.failed, found.longest_gap_ms), (4, 2, 1_300));
        assert_eq!(found.gap_since.as_deref(), Some("1970-01-01T00:00:00.200Z"));
        seen.wait_until(at(1_700).0);
        assert_eq!(seen.availability(), found, "it is no longer than that");
        seen.wait_until(at(3_000).0);
        let found = seen.availability();
        assert_eq!((found.reads, found.longest_gap_ms), (4, 1_400), "what is not answered by the end counts");
        assert_eq!(found.gap_since.as_deref(), Some("1970-01-01T00:00:01.600Z"));
    }
}

//! What a log measures of itself, as etcd does of its own (server/storage/wal/metrics.go).

use std::time::Duration;

use instruments::{Counter, Histogram, doubling};

static BOUNDS: [Duration; 14] = doubling(Duration::from_millis(1));

/// Since the log was opened.
#[derive(Debug)]
pub struct Measured {
    /// How long each batch was being synced.
    pub syncs: Histogram,
    /// How long each batch was being written, before that.
    pub writes: Histogram,
    /// How many bytes they had.
    pub written_bytes: Counter,
}

impl Default for Measured {
    fn default() -> Self {
        Self { syncs: Histogram::new(&BOUNDS), writes: Histogram::new(&BOUNDS), written_bytes: Counter::default() }
    }
}

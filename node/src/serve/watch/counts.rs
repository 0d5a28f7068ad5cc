//! What is counted of watches, as etcd counts it (server/storage/mvcc/metrics.go).

use instruments::{Counter, Gauge};

#[derive(Debug, Default)]
pub(in crate::serve) struct WatchCounts {
    /// Streams that are open.
    pub(in crate::serve) streams: Gauge,
    /// Watches of streams that are open.
    pub(in crate::serve) watches: Gauge,
    /// Watches that were not told of all that there is yet, and streams whose client does not take what it is told.
    pub(in crate::serve) slow: Gauge,
    /// Events that clients were sent.
    pub(in crate::serve) events: Counter,
    /// Events that are to be sent once a client takes what comes before.
    pub(in crate::serve) pending_events: Gauge,
}

//! What a member has applied, read and told watches of, in etcd's names (server/storage/mvcc/metrics.go, server/lease/metrics.go,
//! server/etcdserver/txn/metrics.go).

use super::{Labels, Page};
use crate::serve::context::ServiceContext;

pub(super) fn applied(context: &ServiceContext, page: &mut Page) {
    let (counts, own) = (context.member.machine().counts(), context.member.counts());
    page.counter(
        "etcd_mvcc_range_total",
        "Reads, those of transactions and of their conditions, too.",
        counts.ranges.get(),
    );
    page.counter("etcd_mvcc_put_total", "Puts that were applied.", counts.puts.get());
    page.counter("etcd_mvcc_delete_total", "Deletions that were applied, each of a range.", counts.deletes.get());
    page.counter("etcd_mvcc_txn_total", "Transactions of more than one operation.", counts.txns.get());
    let help = "Bytes of keys and values that were put.";
    page.gauge("etcd_debugging_mvcc_total_put_size_in_bytes", help, counts.put_bytes.get());
    page.counter("etcd_server_slow_apply_total", "What took too long to be applied or read.", counts.slow.get());
    let durations = counts.durations().map(|(op, is_success, took)| {
        let success = is_success.to_string();
        (Labels::of(&[("op", op), ("success", &success), ("version", "v3")]), took)
    });
    page.histograms("etcd_server_apply_duration_seconds", "How long entries took to be applied.", durations);
    let ranges = [("false", &context.ranges[1]), ("true", &context.ranges[0])];
    let ranges = ranges.map(|(success, took)| (Labels::of(&[("success", success)]), took.read()));
    let ranges = ranges.into_iter().filter(|(_, took)| took.count > 0);
    page.histograms("etcd_server_range_duration_seconds", "How long reads took.", ranges);
    let in_progress = counts.snapshots_applied_now.get();
    let help = "Snapshots that are taking the place of the state.";
    page.gauge("etcd_server_snapshot_apply_in_progress_total", help, in_progress);
    page.counter("etcd_debugging_lease_granted_total", "Leases that were granted.", counts.leases_granted.get());
    page.counter("etcd_debugging_lease_revoked_total", "Leases that were revoked.", counts.leases_revoked.get());
    let ttls = [(Labels::default(), counts.ttls.read())];
    page.histograms("etcd_debugging_lease_ttl_total", "The seconds that leases were granted for.", ttls);
    let help = "Leases that were renewed, as the leader.";
    page.counter("etcd_debugging_lease_renewed_total", help, own.leases_renewed.get());
    let help = "Leases that had ended, as the leader.";
    page.counter("etcd_debugging_server_lease_expired_total", help, own.leases_expired.get());
    let help = "How long a hash of the keys at a revision took.";
    let hashes = [(Labels::default(), own.hashes.at_revision.read())];
    page.histograms("etcd_mvcc_hash_rev_duration_seconds", help, hashes);
    let hashes = [(Labels::default(), own.hashes.whole.read())];
    page.histograms("etcd_mvcc_hash_duration_seconds", "How long a hash of all that is stored took.", hashes);
}

pub(super) fn watches(context: &ServiceContext, page: &mut Page) {
    let counts = context.hub.counts();
    page.gauge("etcd_debugging_mvcc_watch_stream_total", "Streams of watches that are open.", counts.streams.get());
    page.gauge("etcd_debugging_mvcc_watcher_total", "Watches.", counts.watches.get());
    let help = "Watches that were not told of all that there is yet.";
    page.gauge("etcd_debugging_mvcc_slow_watcher_total", help, counts.slow.get());
    page.counter("etcd_debugging_mvcc_events_total", "Events that watches were sent.", counts.events.get());
    let help = "Events that wait until a client takes what comes before.";
    page.gauge("etcd_debugging_mvcc_pending_events_total", help, counts.pending_events.get());
}

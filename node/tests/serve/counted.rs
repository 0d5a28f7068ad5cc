//! What is counted of reads, writes, leases and watches: the same load gives what it gives with etcd.

use std::{collections::BTreeMap, time::Instant};

use proto::etcdserverpb::{
    Compare, DeleteRangeRequest, HashKvRequest, LeaseGrantRequest, LeaseRevokeRequest, PutRequest, RangeRequest,
    RequestOp, TxnRequest,
    compare::{CompareResult, CompareTarget, TargetUnion},
    kv_client::KvClient,
    lease_client::LeaseClient,
    maintenance_client::MaintenanceClient,
    request_op::Request,
};
use tonic::{metadata::MetadataValue, transport::Channel};

use crate::{
    http::get,
    metrics::{Page, measured_etcd, page_of_etcd},
    real::{self, PATIENCE},
    served::{ID, Served},
    stream::{Stream, watch},
};

/// What the load does to each of them.
const EXPECTED: [(&str, f64); 16] = [
    ("etcd_debugging_mvcc_keys_total", 4.0),
    ("etcd_mvcc_put_total", 10.0),
    ("etcd_mvcc_delete_total", 6.0),
    ("etcd_mvcc_range_total", 13.0),
    ("etcd_mvcc_txn_total", 6.0),
    ("etcd_debugging_mvcc_total_put_size_in_bytes", 26.0),
    ("etcd_debugging_mvcc_events_total", 4.0),
    ("etcd_debugging_mvcc_watcher_total", 2.0),
    ("etcd_debugging_mvcc_watch_stream_total", 1.0),
    ("etcd_debugging_mvcc_slow_watcher_total", 0.0),
    ("etcd_debugging_mvcc_pending_events_total", 0.0),
    ("etcd_debugging_lease_granted_total", 2.0),
    ("etcd_debugging_lease_revoked_total", 1.0),
    ("etcd_debugging_lease_ttl_total_count", 2.0),
    ("etcd_debugging_lease_ttl_total_sum", 1030.0),
    ("etcd_server_apply_duration_seconds_count", 15.0),
];

fn key(key: &str) -> Vec<u8> {
    key.into()
}

fn put(name: &str, lease: i64) -> PutRequest {
    PutRequest { key: key(name), value: key("v"), lease, ..PutRequest::default() }
}

fn delete(name: &str) -> DeleteRangeRequest {
    DeleteRangeRequest { key: key(name), ..DeleteRangeRequest::default() }
}

fn range(name: &str) -> RangeRequest {
    RangeRequest { key: key(name), ..RangeRequest::default() }
}

fn is_version(name: &str, version: i64) -> Compare {
    Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Version.into(),
        key: key(name),
        target_union: Some(TargetUnion::Version(version)),
        ..Compare::default()
    }
}

fn operations(all: Vec<Request>) -> Vec<RequestOp> {
    all.into_iter().map(|request| RequestOp { request: Some(request) }).collect()
}

/// Ends with two watches on an open stream.
async fn load(channel: &Channel) -> Stream {
    let (mut kv, mut lease) = (KvClient::new(channel.clone()), LeaseClient::new(channel.clone()));
    let mut stream = Stream::open(channel);
    stream.created(watch("a", "", 0)).await;
    stream.created(watch("x", "z", 0)).await;
    kv.put(put("a", 0)).await.unwrap(); // 1 put, 2 bytes
    kv.put(PutRequest { prev_kv: true, ..put("a", 0) }).await.unwrap(); // 1 put, 1 range, 1 txn
    stream.events(2).await;
    kv.put(PutRequest { key: vec![], ..put("a", 0) }).await.unwrap_err();
    kv.put(put("b", 12345)).await.unwrap_err(); // no such lease: with etcd it is counted neither
    kv.delete_range(DeleteRangeRequest { range_end: key("c"), ..delete("b") }).await.unwrap(); // 1 delete, of nothing
    kv.delete_range(DeleteRangeRequest { prev_kv: true, ..delete("b") }).await.unwrap(); // 1 delete, 1 range, 1 txn
    let nested = TxnRequest {
        compare: vec![is_version("a", 7), is_version("a", 2)],
        failure: operations(vec![Request::RequestPut(put("y", 0))]),
        ..TxnRequest::default()
    };
    let all = vec![
        Request::RequestPut(put("x", 0)),
        Request::RequestRange(range("x")),
        Request::RequestDeleteRange(delete("none")),
        Request::RequestTxn(nested),
    ];
    // 2 conditions (the second of those within is not looked at): 2 ranges, 1 txn. 2 puts, 1 range, 1 delete: 1 txn.
    let txn = TxnRequest { compare: vec![is_version("a", 2)], success: operations(all), ..TxnRequest::default() };
    kv.txn(txn).await.unwrap();
    stream.events(2).await;
    let reads = operations(vec![Request::RequestRange(range("a")), Request::RequestRange(range("b"))]);
    kv.txn(TxnRequest { success: reads, ..TxnRequest::default() }).await.unwrap(); // 2 ranges, 1 txn
    for is_serializable in [false, true] {
        kv.range(RangeRequest { serializable: is_serializable, ..range("a") }).await.unwrap(); // 1 range
    }
    kv.range(RangeRequest { limit: 1, ..range("none") }).await.unwrap();
    for ttl in [1000, 30] {
        lease.lease_grant(LeaseGrantRequest { ttl, id: ttl }).await.unwrap();
    }
    for name in ["k1", "k2", "k3", "k4"] {
        kv.put(put(name, 30)).await.unwrap(); // 1 put, 3 bytes
    }
    kv.put(put("k4", 0)).await.unwrap(); // leaves the lease
    kv.put(put("k4", 0)).await.unwrap();
    kv.range(range("k1")).await.unwrap();
    kv.range(range("k1")).await.unwrap();
    lease.lease_revoke(LeaseRevokeRequest { id: 30 }).await.unwrap(); // 3 deletes, 1 txn
    kv.range(range("k1")).await.unwrap();
    MaintenanceClient::new(channel.clone()).hash_kv(HashKvRequest { revision: 0 }).await.unwrap();
    stream
}

/// How much each of them has grown.
fn grown(before: &Page, after: &Page) -> BTreeMap<&'static str, f64> {
    EXPECTED.iter().map(|(name, _)| (*name, after.sum(name) - before.sum(name))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_written_leased_and_watched_is_counted() {
    let served = Served::start().await;
    let before = Page::of(&served).await;
    let stream = load(&served.channel()).await;
    let after = Page::of(&served).await;
    assert_eq!(grown(&before, &after), BTreeMap::from(EXPECTED));
    for (labels, count) in [
        ("op=\"Put\",success=\"true\",version=\"v3\"", 8.0),
        ("op=\"Put\",success=\"false\",version=\"v3\"", 1.0),
        ("op=\"Txn\",success=\"true\",version=\"v3\"", 1.0),
        ("op=\"LeaseRevoke\",success=\"true\",version=\"v3\"", 1.0),
    ] {
        assert_eq!(after.value("etcd_server_apply_duration_seconds_count", labels), count, "{labels}");
    }
    // With etcd a member knows itself, too.
    let id = ID.to_string();
    assert_eq!(after.value("etcd_network_known_peers", &format!("Local=\"{id}\",Remote=\"{id}\"")), 1.0);
    assert_eq!(after.sum("etcd_network_active_peers"), 0.0);
    // The member compares what it holds by itself, too.
    assert!(after.value("etcd_mvcc_hash_rev_duration_seconds_count", "") >= 1.0);
    assert_eq!(after.value("etcd_server_range_duration_seconds_count", "success=\"true\""), 6.0);
    drop(stream);
    let begun = Instant::now();
    loop {
        let page = Page::of(&served).await;
        let open = ["watcher", "watch_stream"].map(|of| page.value(&format!("etcd_debugging_mvcc_{of}_total"), ""));
        if open == [0.0, 0.0] {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{open:?} are left of a stream that is closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_counts_the_same_of_the_same_load() {
    let Some(folder) = real::folder("3_6") else { return };
    let (etcd, port) = measured_etcd(&folder).await;
    let before = page_of_etcd(port).await;
    let _stream = load(&etcd.channel).await;
    let mut theirs = grown(&before, &page_of_etcd(port).await);
    let mut ours = BTreeMap::from(EXPECTED);
    // It applies linearizable reads in another way, and what it says of itself when it starts may still come.
    for counted in [&mut theirs, &mut ours] {
        counted.remove("etcd_server_apply_duration_seconds_count");
    }
    assert_eq!(theirs, ours);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_versions_of_clients_are_counted() {
    let served = Served::start().await;
    let mut kv = served.kv();
    kv.put(put("a", 0)).await.unwrap();
    let mut request = tonic::Request::new(put("a", 0));
    request.metadata_mut().insert("client-api-version", MetadataValue::from_static("3.6.0"));
    kv.put(request).await.unwrap();
    kv.put(PutRequest::default()).await.unwrap_err();
    let mut stream = Stream::open_with(&served.channel(), &[("client-api-version", "3.5")]);
    stream.created(watch("a", "", 2)).await;
    stream.events(2).await;
    let page = Page::of(&served).await;
    let of = |name, kind, service| {
        format!("grpc_method=\"{name}\",grpc_service=\"etcdserverpb.{service}\",grpc_type=\"{kind}\"")
    };
    let (puts, watches) = (of("Put", "unary", "KV"), of("Watch", "bidi_stream", "Watch"));
    assert_eq!(page.value("grpc_server_msg_received_total", &puts), 3.0);
    assert_eq!(page.value("grpc_server_msg_sent_total", &puts), 2.0, "one was refused");
    assert_eq!(page.value("grpc_server_msg_received_total", &watches), 1.0);
    let sent = page.value("grpc_server_msg_sent_total", &watches);
    assert!((2.0..=3.0).contains(&sent), "that it was created, and two events: {sent}");
    for (version, kind, count) in [("3.6.0", "unary", 1.0), ("unknown", "unary", 2.0), ("3.5", "stream", 1.0)] {
        let labels = format!("client_api_version=\"{version}\",type=\"{kind}\"");
        assert_eq!(page.value("etcd_server_client_requests_total", &labels), count, "{labels}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_of_health_and_the_process_is_counted() {
    let served = Served::start().await;
    assert_eq!(get(&served, "/health").await.0, 200);
    assert_eq!(get(&served, "/health?serializable=true").await.0, 200);
    crate::quota::raise(&served, proto::etcdserverpb::AlarmType::Nospace).await;
    assert_eq!(get(&served, "/health").await.0, 503);
    let page = Page::of(&served).await;
    assert_eq!(
        (page.value("etcd_server_health_success", ""), page.value("etcd_server_health_failures", "")),
        (2.0, 1.0)
    );
    let used = page.value("os_fd_used", "");
    assert!(used >= 5.0 && used < page.value("os_fd_limit", ""), "{used}");
    // What is written is synced; it may be on its way.
    let writes = page.value("etcd_disk_wal_write_duration_seconds_count", "");
    let syncs = page.value("etcd_disk_wal_fsync_duration_seconds_count", "");
    assert!(syncs >= 1.0 && (syncs..=syncs + 1.0).contains(&writes), "{writes} writes, {syncs} syncs");
    assert!(page.value("etcd_disk_wal_write_bytes_total", "") > 100.0);
}

//! What clients ask: read, checked and answered as a member does it.

use node::mvcc::{Store, check, is_read_only};
use prost::Message;
use proto::etcdserverpb::{
    CompactionRequest, Compare, DeleteRangeRequest, LeaseCheckpointRequest, LeaseGrantRequest, LeaseRevokeRequest,
    PutRequest, RangeRequest, RequestOp, TxnRequest, request_op::Request,
};

fn put(key: &str, value: &str, lease: i64) -> PutRequest {
    PutRequest { key: key.into(), value: value.into(), lease, ..PutRequest::default() }
}

/// A store with something of everything.
fn store() -> Store {
    let mut store = Store::default();
    store.lease_grant(&LeaseGrantRequest { ttl: 60, id: 7 }).unwrap();
    for (key, lease) in [("a", 0), ("b", 7), ("a", 7), ("c", 0)] {
        store.put(put(key, "value", lease)).unwrap();
    }
    store.delete_range(&DeleteRangeRequest { key: b"c".into(), ..DeleteRangeRequest::default() });
    store
}

/// The first byte says which request it is.
pub fn decode(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let mut store = store();
    let before = store.clone();
    if ask(&mut store, *kind, bytes) == Some(false) {
        assert_eq!(store, before, "what is refused changes nothing");
    }
    while store.forget(1) {}
    let all = RangeRequest { key: vec![0], range_end: vec![0], ..RangeRequest::default() };
    let read = store.range(&all).unwrap();
    assert_eq!(read.count as usize, read.kvs.len());
    let _ = store.hash_kv(0).unwrap();
}

/// Whether it was answered; `None` where it is no request, or a wrong one.
fn ask(store: &mut Store, kind: u8, bytes: &[u8]) -> Option<bool> {
    match kind {
        0 => {
            let request = PutRequest::decode(bytes).ok()?;
            check::put(&request).ok()?;
            Some(store.put(request).is_ok())
        }
        1 => {
            let request = RangeRequest::decode(bytes).ok()?;
            check::range(&request).ok()?;
            Some(store.range(&request).is_ok())
        }
        2 => {
            let request = DeleteRangeRequest::decode(bytes).ok()?;
            check::delete_range(&request).ok()?;
            store.delete_range(&request);
            Some(true)
        }
        3 => {
            let request = TxnRequest::decode(bytes).ok()?;
            check::txn(&request, check::MAX_TXN_OPERATIONS).ok()?;
            Some(if is_read_only(&request) { store.read_txn(&request).is_ok() } else { store.txn(request).is_ok() })
        }
        4 => Some(store.compact(&CompactionRequest::decode(bytes).ok()?).is_ok()),
        5 => Some(store.lease_grant(&LeaseGrantRequest::decode(bytes).ok()?).is_ok()),
        6 => Some(store.lease_revoke(&LeaseRevokeRequest::decode(bytes).ok()?).is_ok()),
        7 => {
            store.lease_checkpoint(&LeaseCheckpointRequest::decode(bytes).ok()?);
            Some(true)
        }
        _ => None,
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let range =
        |key: &str, end: &str| RangeRequest { key: key.into(), range_end: end.into(), ..RangeRequest::default() };
    let delete = DeleteRangeRequest { key: b"a".into(), range_end: b"c".into(), prev_kv: true };
    let op = |request| RequestOp { request: Some(request) };
    let inner = TxnRequest { failure: vec![op(Request::RequestDeleteRange(delete.clone()))], ..TxnRequest::default() };
    let txn = TxnRequest {
        compare: vec![Compare { key: b"a".into(), result: 1, target: 1, ..Compare::default() }],
        success: vec![op(Request::RequestPut(put("d", "new", 7))), op(Request::RequestRange(range("a", "\0")))],
        failure: vec![op(Request::RequestTxn(inner))],
    };
    let kind = |kind: u8, message: Vec<u8>| [&[kind][..], &message].concat();
    vec![
        kind(0, PutRequest { prev_kv: true, ignore_lease: true, ..put("a", "other", 0) }.encode_to_vec()),
        kind(
            1,
            RangeRequest { limit: 1, revision: 3, sort_order: 2, sort_target: 3, ..range("a", "z") }.encode_to_vec(),
        ),
        kind(2, delete.encode_to_vec()),
        kind(3, txn.encode_to_vec()),
        kind(4, CompactionRequest { revision: 4, physical: true }.encode_to_vec()),
        kind(5, LeaseGrantRequest { ttl: 5, id: 9 }.encode_to_vec()),
        kind(6, LeaseRevokeRequest { id: 7 }.encode_to_vec()),
    ]
}

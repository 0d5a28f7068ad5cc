//! Short ways to write requests, and to read what came back.

use node::mvcc::Store;
use proto::{
    etcdserverpb::{
        CompactionRequest, Compare, DeleteRangeRequest, LeaseGrantRequest, PutRequest, RangeRequest, RequestOp,
        TxnRequest,
        compare::{CompareResult, CompareTarget, TargetUnion},
        request_op::Request,
    },
    mvccpb::KeyValue,
};

pub fn put(key: &str, value: &str) -> PutRequest {
    PutRequest { key: key.into(), value: value.into(), ..PutRequest::default() }
}

pub fn put_leased(key: &str, value: &str, lease: i64) -> PutRequest {
    PutRequest { lease, ..put(key, value) }
}

pub fn delete(key: &str, range_end: &str) -> DeleteRangeRequest {
    DeleteRangeRequest { key: key.into(), range_end: range_end.into(), ..DeleteRangeRequest::default() }
}

pub fn range(key: &str, range_end: &str) -> RangeRequest {
    RangeRequest { key: key.into(), range_end: range_end.into(), ..RangeRequest::default() }
}

pub fn all() -> RangeRequest {
    range("\0", "\0")
}

pub fn grant(id: i64) -> LeaseGrantRequest {
    LeaseGrantRequest { id, ttl: 60 }
}

pub fn compaction(revision: i64) -> CompactionRequest {
    CompactionRequest { revision, physical: true }
}

pub fn compare(key: &str, result: CompareResult, target: CompareTarget, value: TargetUnion) -> Compare {
    Compare {
        key: key.into(),
        result: result as i32,
        target: target as i32,
        target_union: Some(value),
        range_end: Vec::new(),
    }
}

pub fn txn(compare: Vec<Compare>, success: Vec<RequestOp>, failure: Vec<RequestOp>) -> TxnRequest {
    TxnRequest { compare, success, failure }
}

pub trait Operation {
    fn op(self) -> RequestOp;
}

macro_rules! operation {
    ($($request:ident $variant:ident),*) => {
        $(impl Operation for $request {
            fn op(self) -> RequestOp {
                RequestOp { request: Some(Request::$variant(self)) }
            }
        })*
    };
}

operation!(
    PutRequest RequestPut,
    DeleteRangeRequest RequestDeleteRange,
    RangeRequest RequestRange,
    TxnRequest RequestTxn
);

/// `a=1 b=2`: each key with its value.
pub fn pairs(kvs: &[KeyValue]) -> String {
    kvs.iter().map(|kv| format!("{}={}", text(&kv.key), text(&kv.value))).collect::<Vec<_>>().join(" ")
}

/// `a=1 @4 (2, 3)`: the value, where it was written, where created, how often written.
pub fn whole(kv: &KeyValue) -> String {
    let (key, value) = (text(&kv.key), text(&kv.value));
    format!("{key}={value} @{} ({}, {})", kv.mod_revision, kv.create_revision, kv.version)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A store that was given `a=1 b=2 -a c=3`, one word a revision from 2 on; `-a..` deletes from `a` on.
pub fn store(words: &str) -> Store {
    let mut store = Store::default();
    for word in words.split_whitespace() {
        if let Some((key, value)) = word.split_once('=') {
            store.put(put(key, value)).unwrap();
        } else if let Some(first) = word.strip_prefix('-').and_then(|word| word.strip_suffix("..")) {
            store.delete_range(&delete(first, "\0"));
        } else if let Some(key) = word.strip_prefix('-') {
            store.delete_range(&delete(key, ""));
        }
    }
    store
}

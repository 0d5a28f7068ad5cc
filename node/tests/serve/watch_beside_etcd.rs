//! The same watches on a member and on a real etcd 3.6 are told the same.

use std::collections::BTreeMap;

use proto::etcdserverpb::{
    CompactionRequest, DeleteRangeRequest, PutRequest, RequestOp, TxnRequest, WatchCreateRequest, kv_client::KvClient,
    request_op::Request, watch_create_request::FilterType,
};
use tonic::transport::Channel;

use crate::{
    real::{self, Etcd},
    served::Served,
    stream::{Stream, watch},
};

/// How much is said on the first stream, and on the second.
const LIVE: usize = 44;
const LATE: usize = 22;

fn put(key: &str, value: &str) -> PutRequest {
    PutRequest { key: key.into(), value: value.into(), ..PutRequest::default() }
}

/// Two writes of `a`, one of `b`, its deletion; from revision 2 on.
async fn write(channel: &Channel) {
    let mut kv = KvClient::new(channel.clone());
    for request in [put("a", "1"), put("a", "2"), put("b", "3")] {
        kv.put(request).await.unwrap();
    }
    kv.delete_range(DeleteRangeRequest { key: b"b".to_vec(), ..DeleteRangeRequest::default() }).await.unwrap();
    let both = ["a", "c"].map(|key| RequestOp { request: Some(Request::RequestPut(put(key, "4"))) });
    kv.txn(TxnRequest { success: both.into(), ..TxnRequest::default() }).await.unwrap();
}

async fn compact(channel: &Channel, revision: i64) {
    KvClient::new(channel.clone()).compact(CompactionRequest { revision, physical: true }).await.unwrap();
}

/// A watch of each kind, asked for before anything was written.
fn from_now_on() -> Vec<WatchCreateRequest> {
    let only = |filter: FilterType| WatchCreateRequest { filters: vec![filter.into()], ..watch("a", "z", 0) };
    vec![
        watch("a", "", 0),
        watch("a", "c", 0),
        watch("", "", 0),
        watch("", "\0", 0),
        watch("b", "\0", 0),
        WatchCreateRequest { prev_kv: true, ..watch("a", "z", 0) },
        only(FilterType::Noput),
        only(FilterType::Nodelete),
        WatchCreateRequest { watch_id: 70, ..watch("a", "", 0) },
        WatchCreateRequest { watch_id: 70, ..watch("b", "", 0) },
        WatchCreateRequest { watch_id: 11, ..watch("none", "", 0) },
        watch("a", "", 3),
        watch("z", "a", 0),
        watch("a", "a", 0),
        watch("a", "", -1),
        WatchCreateRequest { fragment: true, ..watch("a", "z", 0) },
        watch("a", "", 0),
    ]
}

/// A watch of each kind, asked for when revision 4 is the oldest.
fn from_then_on() -> Vec<WatchCreateRequest> {
    vec![
        watch("a", "z", 3),
        watch("a", "z", 4),
        WatchCreateRequest { prev_kv: true, ..watch("a", "z", 4) },
        WatchCreateRequest { prev_kv: true, ..watch("a", "z", 5) },
        watch("b", "", 5),
        watch("a", "", 1),
        watch("a", "", 6),
    ]
}

/// What is said of each watch.
type Told = BTreeMap<i64, Vec<String>>;

async fn live(channel: &Channel) -> [Told; 2] {
    let mut stream = Stream::open(channel);
    let watches = from_now_on();
    for request in &watches {
        stream.create(request.clone()).await;
    }
    let mut created = Told::new();
    for _ in &watches {
        let response = stream.next().await;
        assert!(response.created);
        let words = format!("{} {:?}", response.canceled, response.cancel_reason);
        created.entry(response.watch_id).or_default().push(words);
    }
    write(channel).await;
    stream.cancel(2).await;
    stream.cancel(2).await;
    stream.cancel(99).await;
    let told = stream.told(LIVE).await;
    stream.ask_progress().await;
    let all = stream.told(1).await;
    assert_eq!(all.keys().collect::<Vec<_>>(), [&-1], "{all:?}");
    [created, told]
}

async fn late(channel: &Channel) -> Told {
    let mut stream = Stream::open(channel);
    for request in from_then_on() {
        stream.create(request).await;
    }
    stream.told(LATE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_is_told_what_etcd_tells() {
    let Some(folder) = real::folder("3_6") else { return };
    let (served, etcd) = (Served::start().await, Etcd::start(&folder, &[]).await);
    let (served, etcd) = (served.channel(), &etcd.channel);
    assert_eq!(live(&served).await, live(etcd).await);
    for channel in [&served, etcd] {
        compact(channel, 4).await;
    }
    assert_eq!(late(&served).await, late(etcd).await);
}

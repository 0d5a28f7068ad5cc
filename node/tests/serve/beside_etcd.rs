//! The same requests over the wire, to a member and to a real etcd 3.6: answers, codes and words are equal.

use std::fmt::Debug;

use proto::etcdserverpb::{
    AlarmRequest, AuthenticateRequest, CompactionRequest, Compare, DeleteRangeRequest, HashKvRequest,
    LeaseGrantRequest, LeaseKeepAliveRequest, LeaseLeasesRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest,
    MemberListRequest, PutRequest, RangeRequest, RequestOp, ResponseHeader, StatusRequest, TxnRequest,
    auth_client::AuthClient, cluster_client::ClusterClient, kv_client::KvClient, lease_client::LeaseClient,
    maintenance_client::MaintenanceClient, request_op::Request,
};
use tonic::{Code, Response, Status, transport::Channel};

use crate::{
    real::{self, Etcd},
    served::Served,
};

/// One request.
#[derive(Clone, Debug)]
enum Ask {
    Range(RangeRequest),
    Put(PutRequest),
    Delete(DeleteRangeRequest),
    Txn(TxnRequest),
    Compact(i64),
    Grant { id: i64, ttl: i64 },
    Revoke(i64),
    TimeToLive(i64),
    KeepAlive(i64),
    Leases,
    HashKv(i64),
    Alarms,
    Login,
    Errors,
    Members,
}

/// What came back: the answer in words, without what differs from member to member; or code and words.
type Said = Result<String, (Code, String)>;

fn words<T: Debug>(
    answer: Result<Response<T>, Status>,
    header: impl FnOnce(&mut T) -> &mut Option<ResponseHeader>,
) -> Said {
    let mut answer = answer.map_err(|status| (status.code(), status.message().to_owned()))?.into_inner();
    let header = header(&mut answer);
    *header = header.take().map(|header| ResponseHeader { revision: header.revision, ..ResponseHeader::default() });
    Ok(format!("{answer:?}"))
}

impl Ask {
    async fn of(self, channel: &Channel) -> Said {
        let mut kv = KvClient::new(channel.clone());
        let mut lease = LeaseClient::new(channel.clone());
        let mut maintenance = MaintenanceClient::new(channel.clone());
        match self {
            Self::Range(request) => words(kv.range(request).await, |answer| &mut answer.header),
            Self::Put(request) => words(kv.put(request).await, |answer| &mut answer.header),
            Self::Delete(request) => words(kv.delete_range(request).await, |answer| &mut answer.header),
            Self::Txn(request) => words(kv.txn(request).await, |answer| &mut answer.header),
            Self::Compact(revision) => {
                let request = CompactionRequest { revision, physical: true };
                words(kv.compact(request).await, |answer| &mut answer.header)
            }
            Self::Grant { id, ttl } => {
                words(lease.lease_grant(LeaseGrantRequest { ttl, id }).await, |answer| &mut answer.header)
            }
            Self::Revoke(id) => words(lease.lease_revoke(LeaseRevokeRequest { id }).await, |answer| &mut answer.header),
            Self::TimeToLive(id) => {
                let request = LeaseTimeToLiveRequest { id, keys: true };
                words(lease.lease_time_to_live(request).await, |answer| &mut answer.header)
            }
            Self::KeepAlive(id) => {
                let requests = tokio_stream::once(LeaseKeepAliveRequest { id });
                let mut answers = lease.lease_keep_alive(requests).await.unwrap().into_inner();
                let first = answers.message().await.map(|answer| Response::new(answer.expect("an answer")));
                words(first, |answer| &mut answer.header)
            }
            Self::Leases => words(lease.lease_leases(LeaseLeasesRequest {}).await, |answer| &mut answer.header),
            Self::HashKv(revision) => {
                words(maintenance.hash_kv(HashKvRequest { revision }).await, |answer| &mut answer.header)
            }
            Self::Alarms => words(maintenance.alarm(AlarmRequest::default()).await, |answer| &mut answer.header),
            Self::Login => {
                let request = AuthenticateRequest { name: "root".into(), password: "secret".into() };
                words(AuthClient::new(channel.clone()).authenticate(request).await, |answer| &mut answer.header)
            }
            Self::Errors => {
                let status = maintenance.status(StatusRequest {}).await.unwrap().into_inner();
                Ok(format!("{:?} {}", status.errors, status.storage_version))
            }
            Self::Members => {
                let request = MemberListRequest { linearizable: true };
                let list = ClusterClient::new(channel.clone()).member_list(request).await.unwrap().into_inner();
                Ok(format!("{:?}", list.members.iter().map(|member| &member.name).collect::<Vec<_>>()))
            }
        }
    }
}

fn key(key: &str) -> Vec<u8> {
    key.into()
}

fn range(from: &str, to: &str) -> RangeRequest {
    RangeRequest { key: key(from), range_end: key(to), ..RangeRequest::default() }
}

fn put(name: &str, value: &str) -> PutRequest {
    PutRequest { key: key(name), value: key(value), ..PutRequest::default() }
}

fn op(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}

fn all() -> Vec<Ask> {
    let leased = |lease| PutRequest { lease, ..put("l", "1") };
    let puts = |names: &[&str]| names.iter().map(|name| op(Request::RequestPut(put(name, "t")))).collect::<Vec<_>>();
    let reads = vec![op(Request::RequestRange(range("a", "z")))];
    let nothing = Compare { key: key("nothing"), ..Compare::default() };
    let many = (0..129).map(|number| op(Request::RequestPut(put(&number.to_string(), "")))).collect();
    let at = |revision| RangeRequest { revision, ..range("a", "z") };
    let huge = "x".repeat(3 << 19);
    vec![
        // Keys.
        Ask::Put(put("a", "1")),
        Ask::Put(PutRequest { prev_kv: true, ..put("a", "2") }),
        Ask::Put(put("b", "")),
        Ask::Put(put("", "1")),
        Ask::Put(PutRequest { ignore_value: true, ..put("a", "3") }),
        Ask::Put(PutRequest { ignore_value: true, ..put("none", "") }),
        Ask::Put(PutRequest { ignore_lease: true, ..leased(7) }),
        Ask::Put(leased(7)),
        Ask::Put(put("huge", &huge)),
        Ask::Put(put("longer than what is read", &huge.repeat(2))),
        Ask::Range(range("a", "")),
        Ask::Range(range("a", "z")),
        Ask::Range(range("", "z")),
        Ask::Range(range("\0", "\0")),
        Ask::Range(RangeRequest { serializable: true, ..range("a", "z") }),
        Ask::Range(RangeRequest { limit: 1, ..range("a", "z") }),
        Ask::Range(RangeRequest { keys_only: true, ..range("a", "z") }),
        Ask::Range(RangeRequest { count_only: true, ..range("a", "z") }),
        Ask::Range(RangeRequest { sort_order: 9, ..range("a", "z") }),
        Ask::Range(RangeRequest { sort_target: -1, ..range("a", "z") }),
        Ask::Range(at(2)),
        Ask::Range(at(99)),
        Ask::Delete(DeleteRangeRequest { prev_kv: true, ..DeleteRangeRequest { key: key("b"), ..Default::default() } }),
        Ask::Delete(DeleteRangeRequest { key: key("b"), ..Default::default() }),
        Ask::Delete(DeleteRangeRequest::default()),
        // Transactions.
        Ask::Txn(TxnRequest { success: puts(&["c", "d"]), ..TxnRequest::default() }),
        Ask::Txn(TxnRequest { compare: vec![nothing], success: reads.clone(), failure: puts(&["e"]) }),
        Ask::Txn(TxnRequest { success: reads, ..TxnRequest::default() }),
        Ask::Txn(TxnRequest { success: puts(&["c", "c"]), ..TxnRequest::default() }),
        Ask::Txn(TxnRequest { success: puts(&[""]), ..TxnRequest::default() }),
        Ask::Txn(TxnRequest { success: many, ..TxnRequest::default() }),
        Ask::Txn(TxnRequest { success: vec![RequestOp::default()], ..TxnRequest::default() }),
        Ask::Txn(TxnRequest { success: vec![op(Request::RequestRange(at(99)))], ..TxnRequest::default() }),
        Ask::Txn(TxnRequest::default()),
        // Leases.
        Ask::Grant { id: 7, ttl: 600 },
        Ask::Grant { id: 7, ttl: 600 },
        Ask::Grant { id: 8, ttl: 0 },
        Ask::Grant { id: 9, ttl: 9_000_000_001 },
        Ask::Put(leased(7)),
        Ask::KeepAlive(7),
        Ask::KeepAlive(99),
        Ask::TimeToLive(99),
        Ask::Revoke(8),
        Ask::Leases,
        Ask::Revoke(7),
        Ask::Revoke(7),
        Ask::Range(range("l", "")),
        // History.
        Ask::HashKv(0),
        Ask::HashKv(5),
        Ask::HashKv(99),
        Ask::Compact(99),
        Ask::Compact(5),
        Ask::Compact(5),
        Ask::Compact(0),
        Ask::HashKv(3),
        Ask::HashKv(0),
        Ask::Range(at(4)),
        Ask::Range(at(5)),
        Ask::Txn(TxnRequest { success: vec![op(Request::RequestRange(at(4)))], ..TxnRequest::default() }),
        // Answers that are long.
        Ask::Put(put("long/1", &"1".repeat(100_000))),
        Ask::Put(put("long/2", &"2".repeat(10_000))),
        Ask::Put(put("long/3", &"3".repeat(70_000))),
        Ask::Range(range("long/", "long0")),
        Ask::Range(RangeRequest { limit: 2, ..range("long/", "long0") }),
        Ask::Range(RangeRequest { keys_only: true, ..range("long/", "long0") }),
        Ask::Range(RangeRequest { sort_order: 2, ..range("long/", "long0") }),
        Ask::Range(RangeRequest { serializable: true, revision: 99, ..range("long/", "long0") }),
        Ask::Txn(TxnRequest {
            success: vec![op(Request::RequestRange(range("long/", "long0")))],
            ..TxnRequest::default()
        }),
        // The member.
        Ask::Alarms,
        Ask::Errors,
        Ask::Members,
        Ask::Login,
    ]
}

/// Compactions and their hashes, the first put at revision 2.
fn compactions() -> Vec<Ask> {
    let delete = |name| Ask::Delete(DeleteRangeRequest { key: key(name), ..DeleteRangeRequest::default() });
    let mut asks = vec![
        Ask::Put(put("a", "1")),
        Ask::Put(put("b", "1")),
        Ask::Put(put("a", "2")),
        delete("b"),
        Ask::HashKv(4),
        Ask::Compact(4),
        Ask::HashKv(4),
        Ask::HashKv(3),
        Ask::HashKv(5),
        Ask::Compact(5),
        Ask::HashKv(4),
        Ask::HashKv(5),
        Ask::HashKv(0),
        // A compaction that leaves nothing but a deletion.
        delete("a"),
        Ask::HashKv(6),
        Ask::Compact(6),
        Ask::HashKv(6),
        Ask::HashKv(0),
    ];
    for revision in 7..15 {
        asks.extend([Ask::Put(put("c", "1")), Ask::Compact(revision), Ask::HashKv(revision)]);
    }
    // Of the first one nothing is known any more, nor of what was never one.
    asks.extend([3, 4, 5, 6, 13, 14, 15, 0].map(Ask::HashKv));
    asks
}

#[tokio::test(flavor = "multi_thread")]
async fn compactions_are_hashed_as_etcd_hashes_them() {
    are_answered_alike(compactions()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_answers_as_etcd_does() {
    are_answered_alike(all()).await;
}

async fn are_answered_alike(asks: Vec<Ask>) {
    let Some(folder) = real::folder("3_6") else { return };
    let (served, etcd) = (Served::start().await, Etcd::start(&folder, &[]).await);
    let channel = served.channel();
    let (count, mut refused) = (asks.len(), 0);
    for ask in asks {
        let place: String = format!("{ask:?}").chars().take(300).collect();
        let (given, expected) = (ask.clone().of(&channel).await, ask.of(&etcd.channel).await);
        refused += usize::from(given.is_err());
        assert_eq!(given, expected, "{place}");
    }
    println!("counted: {count} requests beside etcd 3.6, {refused} of them refused");
}

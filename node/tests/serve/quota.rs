//! Room, and alarms: who is refused, who is not, and how a full member gets room again.

use std::time::Duration;

use node::{entry::EntryKind, serve::ServeOptions};
use proto::etcdserverpb::{
    AlarmMember, AlarmRequest, AlarmType, CompactionRequest, DefragmentRequest, DeleteRangeRequest, LeaseGrantRequest,
    LeaseRevokeRequest, PutRequest, RangeRequest, RequestOp, StatusRequest, TxnRequest, alarm_request::AlarmAction,
    request_op::Request,
};
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};

use crate::{
    real::PATIENCE,
    served::{ID, Served, Setup, options},
};

const FULL: &str = "etcdserver: mvcc: database space exceeded";
const CORRUPT: &str = "etcdserver: corrupt cluster";
const TOO_LARGE: &str = "etcdserver: request is too large";

/// Raises an alarm of the member.
pub async fn raise(served: &Served, alarm: AlarmType) {
    let (action, alarm) = (AlarmAction::Activate.into(), alarm.into());
    served.apply(EntryKind::Alarm(AlarmRequest { action, member_id: ID.0, alarm })).await;
}

async fn alarms(served: &Served) -> Vec<AlarmMember> {
    served.maintenance().alarm(AlarmRequest::default()).await.unwrap().into_inner().alarms
}

fn put(value: usize) -> PutRequest {
    PutRequest { key: b"a".to_vec(), value: vec![7; value], ..PutRequest::default() }
}

fn txn(value: usize) -> TxnRequest {
    let put = RequestOp { request: Some(Request::RequestPut(put(value))) };
    TxnRequest { success: vec![put], ..TxnRequest::default() }
}

fn delete() -> DeleteRangeRequest {
    DeleteRangeRequest { key: b"a".to_vec(), ..DeleteRangeRequest::default() }
}

fn is_refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, words: &str) {
    let status = answer.unwrap_err();
    assert_eq!((status.code(), status.message()), (code, words));
}

async fn small() -> Served {
    let options = ServeOptions { quota_bytes: 100_000, ..options() };
    Served::set_up(Setup { options, ..Setup::default() }).await
}

fn disarm() -> AlarmRequest {
    AlarmRequest { action: AlarmAction::Deactivate.into(), member_id: ID.0, alarm: AlarmType::Nospace.into() }
}

/// Waits until the member has raised its alarm.
async fn raised(served: &Served) {
    let raised = async {
        while alarms(served).await.is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, raised).await.expect("it is full");
    assert_eq!(alarms(served).await, [AlarmMember { member_id: ID.0, alarm: AlarmType::Nospace.into() }]);
}

/// Members have quotas of their own, and what another has taken is applied.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_others_fill_raises_the_alarm() {
    let served = small().await;
    served.apply(EntryKind::Put(put(60_000))).await;
    assert_eq!(alarms(&served).await, []);
    served.apply(EntryKind::Put(put(60_000))).await;
    raised(&served).await;
    // Nothing has become less, and what comes next makes it more.
    served.maintenance().alarm(disarm()).await.unwrap();
    assert_eq!(alarms(&served).await, []);
    served.apply(EntryKind::Put(put(1))).await;
    raised(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_member_refuses_what_needs_room_until_the_alarm_is_disarmed() {
    let served = small().await;
    let (mut kv, mut lease) = (served.kv(), served.lease());
    kv.put(put(60_000)).await.unwrap();
    is_refused(kv.put(put(60_000)).await, Code::ResourceExhausted, FULL);
    assert_eq!(alarms(&served).await, [AlarmMember { member_id: ID.0, alarm: AlarmType::Nospace.into() }]);
    let status = served.maintenance().status(StatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.errors, [format!("memberID:{} alarm:NOSPACE ", ID.0)]);
    // There would be room for these, but for the alarm.
    is_refused(kv.put(put(1)).await, Code::ResourceExhausted, FULL);
    is_refused(kv.txn(txn(1)).await, Code::ResourceExhausted, FULL);
    is_refused(lease.lease_grant(LeaseGrantRequest { ttl: 60, id: 0 }).await, Code::ResourceExhausted, FULL);
    // These give room, or need none.
    kv.range(RangeRequest { key: b"a".to_vec(), ..RangeRequest::default() }).await.unwrap();
    kv.txn(TxnRequest::default()).await.unwrap();
    let revision = kv.delete_range(delete()).await.unwrap().into_inner().header.unwrap().revision;
    kv.compact(CompactionRequest { revision, physical: true }).await.unwrap();
    served.maintenance().defragment(DefragmentRequest {}).await.unwrap();
    is_refused(kv.put(put(1)).await, Code::ResourceExhausted, FULL);
    served.maintenance().alarm(disarm()).await.unwrap();
    assert_eq!(alarms(&served).await, []);
    kv.put(put(60_000)).await.unwrap();
}

/// However many requests find no room, one entry says so.
#[tokio::test(flavor = "multi_thread")]
async fn the_alarm_is_raised_once() {
    let served = small().await;
    served.kv().put(put(90_000)).await.unwrap();
    let before = served.member.read(|state| state.applied);
    let mut refused = Vec::new();
    for _ in 0..50 {
        let mut kv = served.kv();
        refused.push(tokio::spawn(async move { kv.put(put(60_000)).await }));
    }
    for one in refused {
        is_refused(one.await.unwrap(), Code::ResourceExhausted, FULL);
    }
    let entries = served.member.read(|state| state.applied).0 - before.0;
    assert_eq!(entries, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_while_members_hold_different_data() {
    let served = Served::start().await;
    let (mut kv, mut lease) = (served.kv(), served.lease());
    lease.lease_grant(LeaseGrantRequest { ttl: 60, id: 7 }).await.unwrap();
    raise(&served, AlarmType::Corrupt).await;
    is_refused(kv.put(put(1)).await, Code::DataLoss, CORRUPT);
    is_refused(kv.txn(txn(1)).await, Code::DataLoss, CORRUPT);
    is_refused(kv.delete_range(delete()).await, Code::DataLoss, CORRUPT);
    is_refused(kv.compact(CompactionRequest { revision: 1, physical: false }).await, Code::DataLoss, CORRUPT);
    is_refused(lease.lease_grant(LeaseGrantRequest { ttl: 60, id: 8 }).await, Code::DataLoss, CORRUPT);
    is_refused(lease.lease_revoke(LeaseRevokeRequest { id: 7 }).await, Code::DataLoss, CORRUPT);
    kv.range(RangeRequest { key: b"a".to_vec(), ..RangeRequest::default() }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_too_large_is_refused_and_the_next_is_not() {
    let served = Served::start().await;
    let mut kv = served.kv();
    kv.put(put((3 << 19) - 100)).await.unwrap();
    is_refused(kv.put(put(3 << 19)).await, Code::InvalidArgument, TOO_LARGE);
    is_refused(kv.txn(txn(3 << 19)).await, Code::InvalidArgument, TOO_LARGE);
    // More than is read at all: in the words of grpc-go. Beside the value there are 8 bytes.
    let longer = "grpc: received message larger than max (3145736 vs. 2097152)";
    is_refused(kv.put(put(3 << 20)).await, Code::ResourceExhausted, longer);
    kv.put(put(1)).await.unwrap();
    // Together they are more than one message may be, and an answer may be as long as it must.
    let mut all = Vec::new();
    for key in 0..5 {
        kv.put(PutRequest { key: vec![b'k', key], value: vec![7; 1 << 20], ..PutRequest::default() }).await.unwrap();
        all.push(vec![b'k', key]);
    }
    let range = RangeRequest { key: b"k".to_vec(), range_end: b"l".to_vec(), ..RangeRequest::default() };
    let found = kv.range(range).await.unwrap().into_inner().kvs;
    assert_eq!(found.into_iter().map(|kv| kv.key).collect::<Vec<_>>(), all);
}

/// More than a member can put into the log is refused before it piles up.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_with_too_much_under_way_says_so() {
    let served = Served::start().await;
    for (count, bytes) in [(5000, 1), (2, 256 << 20)] {
        let under_way: Vec<_> = (0..count).map(|_| served.member.machine().proposals().begin(bytes)).collect();
        is_refused(served.kv().put(put(1)).await, Code::ResourceExhausted, "etcdserver: too many requests");
        served.kv().range(RangeRequest { key: b"a".to_vec(), ..RangeRequest::default() }).await.unwrap();
        drop(under_way);
        served.kv().put(put(1)).await.unwrap();
    }
}

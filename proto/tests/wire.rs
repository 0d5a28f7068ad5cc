//! Our messages against bytes that a real etcd and its client exchanged: each decodes to what was meant, and is
//! written back to the very same bytes. A wrong field number or type fails one of the two.
//!
//! `captured/*.txt` say which release produced them, and how.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::{fmt::Debug, fmt::Write as _};

use prost::Message;
use proto::{
    etcdserverpb::{
        AlarmMember, AlarmRequest, AlarmResponse, AlarmType, AuthRoleAddRequest, AuthUserAddRequest,
        AuthUserGetRequest, AuthUserGetResponse, AuthUserGrantRoleRequest, AuthenticateRequest, AuthenticateResponse,
        CompactionRequest, Compare, DeleteRangeRequest, DeleteRangeResponse, DowngradeInfo, DowngradeRequest,
        DowngradeResponse, Feature, FeatureGateStatusRequest, FeatureGateStatusResponse, HashKvRequest, HashKvResponse,
        LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseLeasesResponse,
        LeaseRevokeRequest, LeaseRevokeResponse, LeaseStatus, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, Member,
        MemberListRequest, MemberListResponse, MoveLeaderRequest, PutRequest, PutResponse, RangeRequest, RangeResponse,
        RequestOp, ResponseHeader, ResponseOp, StatusResponse, TxnRequest, TxnResponse, UserAddOptions,
        WatchCreateRequest, WatchRequest, WatchResponse,
        alarm_request::AlarmAction,
        compare::{CompareResult, CompareTarget, TargetUnion},
        downgrade_request::DowngradeAction,
        range_request::{SortOrder, SortTarget},
        request_op::Request,
        response_op::Response,
        watch_request::RequestUnion,
    },
    mvccpb::{Event, KeyValue, event::EventType},
};

const CLUSTER: u64 = 0x89ec_c85d_b6af_184d;
const A: u64 = 0xf4a4_5700_8d14_41f2;
const B: u64 = 0x71a8_4c88_21a8_935d;
const LEASE: i64 = 1_395_449_571_289_625_098;

/// The messages one release exchanged.
struct Captured(&'static str);

const ETCD_3_4: Captured = Captured(include_str!("captured/etcd-3.4.23.txt"));
const ETCD_3_5: Captured = Captured(include_str!("captured/etcd-3.5.30.txt"));
const ETCD_3_6: Captured = Captured(include_str!("captured/etcd-3.6.14.txt"));

impl Captured {
    /// The `nth` message of this label, counted from 0.
    fn bytes(&self, label: &str, nth: usize) -> Vec<u8> {
        let hex = self
            .0
            .lines()
            .filter_map(|line| line.strip_prefix(label)?.strip_prefix(' ').or(Some("")))
            .nth(nth)
            .unwrap_or_else(|| panic!("no message {nth} of {label}"));
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// Decodes to `expected`, which is written back to the same bytes.
    fn is<M: prost::Message + Default + PartialEq + Debug>(&self, label: &str, nth: usize, expected: M) {
        let bytes = self.bytes(label, nth);
        let decoded = M::decode(bytes.as_slice()).unwrap_or_else(|error| panic!("{label} {nth}: {error}"));
        assert_eq!(decoded, expected, "{label} {nth}");
        assert_eq!(hex(&expected.encode_to_vec()), hex(&bytes), "{label} {nth}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn header(revision: i64, raft_term: u64) -> Option<ResponseHeader> {
    Some(ResponseHeader { cluster_id: CLUSTER, member_id: B, revision, raft_term })
}

fn key_value(key: &str, value: &str, create_revision: i64, mod_revision: i64, version: i64) -> KeyValue {
    KeyValue { key: key.into(), value: value.into(), create_revision, mod_revision, version, lease: 0 }
}

fn compare(result: CompareResult, target: CompareTarget, key: &str, operand: TargetUnion) -> Compare {
    Compare {
        result: result.into(),
        target: target.into(),
        key: key.into(),
        target_union: Some(operand),
        range_end: vec![],
    }
}

#[test]
fn keys_are_read_written_and_deleted() {
    let put = PutRequest { key: "k1".into(), value: "v1".into(), ..Default::default() };
    ETCD_3_5.is("KV/Put request", 0, put.clone());
    ETCD_3_5.is("KV/Put request", 1, PutRequest { value: "v2".into(), prev_kv: true, ..put });
    let leased = PutRequest { key: "leased".into(), value: "x".into(), lease: LEASE, ..Default::default() };
    ETCD_3_5.is("KV/Put request", 2, leased);
    let before = Some(key_value("k1", "v1", 3, 3, 1));
    ETCD_3_5.is("KV/Put response", 1, PutResponse { header: header(4, 2), prev_kv: before });

    let prefix = RangeRequest { key: "k".into(), range_end: "l".into(), ..Default::default() };
    ETCD_3_5.is("KV/Range request", 0, prefix.clone());
    let sorted = RangeRequest {
        limit: 1,
        sort_order: SortOrder::Descend.into(),
        sort_target: SortTarget::Mod.into(),
        serializable: true,
        ..prefix
    };
    ETCD_3_5.is("KV/Range request", 1, sorted);
    let all = RangeRequest { key: vec![0], range_end: vec![0], keys_only: true, ..Default::default() };
    ETCD_3_5.is("KV/Range request", 2, all);
    let kvs = vec![key_value("k1", "v2", 3, 4, 2)];
    ETCD_3_5.is("KV/Range response", 0, RangeResponse { header: header(4, 2), kvs, more: false, count: 1 });

    let delete = DeleteRangeRequest { key: "k2".into(), prev_kv: true, range_end: vec![] };
    ETCD_3_5.is("KV/DeleteRange request", 0, delete);
    let prev_kvs = vec![key_value("k2", "v", 5, 5, 1)];
    ETCD_3_5.is("KV/DeleteRange response", 0, DeleteRangeResponse { header: header(6, 2), deleted: 1, prev_kvs });
    ETCD_3_5.is("KV/Compact request", 0, CompactionRequest { revision: 3, physical: false });
}

#[test]
fn a_transaction_compares_and_chooses() {
    let put = PutRequest { key: "k2".into(), value: "v".into(), ..Default::default() };
    let get = Request::RequestRange(RangeRequest { key: "k1".into(), ..Default::default() });
    let delete = Request::RequestDeleteRange(DeleteRangeRequest { key: "gone".into(), ..Default::default() });
    let prefix = Request::RequestRange(RangeRequest { key: "k".into(), range_end: "l".into(), ..Default::default() });
    let ops = |requests: Vec<Request>| -> Vec<RequestOp> {
        requests.into_iter().map(|request| RequestOp { request: Some(request) }).collect()
    };
    let yes = TxnRequest {
        compare: vec![
            compare(CompareResult::Equal, CompareTarget::Create, "k1", TargetUnion::CreateRevision(3)),
            compare(CompareResult::Greater, CompareTarget::Mod, "k1", TargetUnion::ModRevision(1)),
            compare(CompareResult::Less, CompareTarget::Version, "k1", TargetUnion::Version(9)),
            compare(CompareResult::Equal, CompareTarget::Value, "k1", TargetUnion::Value("v2".into())),
        ],
        success: ops(vec![Request::RequestPut(put.clone()), get, delete]),
        failure: ops(vec![prefix.clone()]),
    };
    ETCD_3_5.is("KV/Txn request", 0, yes);
    let no = TxnRequest {
        compare: vec![compare(CompareResult::Equal, CompareTarget::Mod, "absent", TargetUnion::ModRevision(7))],
        success: ops(vec![Request::RequestPut(PutRequest { key: "k3".into(), ..put })]),
        failure: ops(vec![prefix]),
    };
    ETCD_3_5.is("KV/Txn request", 1, no);
}

#[test]
fn a_transaction_compares_leases_and_ranges_and_nests() {
    let lease = compare(CompareResult::NotEqual, CompareTarget::Lease, "k1", TargetUnion::Lease(7));
    let prefix = compare(CompareResult::Equal, CompareTarget::Create, "p", TargetUnion::CreateRevision(0));
    let read = Request::RequestRange(RangeRequest { key: "k1".into(), ..Default::default() });
    let inner = TxnRequest { success: vec![RequestOp { request: Some(read) }], ..Default::default() };
    let request = TxnRequest {
        compare: vec![lease, Compare { range_end: "q".into(), ..prefix }],
        success: vec![RequestOp { request: Some(Request::RequestTxn(inner)) }],
        failure: vec![],
    };
    ETCD_3_6.is("KV/Txn request", 0, request);
}

#[test]
fn a_transaction_answers_for_the_branch_it_took() {
    let inner = |revision| Some(ResponseHeader { revision, ..Default::default() });
    let op = |response| ResponseOp { response: Some(response) };
    let read = |kvs: Vec<KeyValue>| {
        let count = kvs.len() as i64;
        op(Response::ResponseRange(RangeResponse { header: inner(5), kvs, more: false, count }))
    };
    let k1 = key_value("k1", "v2", 3, 4, 2);
    let yes = TxnResponse {
        header: header(5, 2),
        succeeded: true,
        responses: vec![
            op(Response::ResponsePut(PutResponse { header: inner(5), prev_kv: None })),
            read(vec![k1.clone()]),
            op(Response::ResponseDeleteRange(DeleteRangeResponse { header: inner(5), deleted: 0, prev_kvs: vec![] })),
        ],
    };
    ETCD_3_5.is("KV/Txn response", 0, yes);
    let k2 = key_value("k2", "v", 5, 5, 1);
    let no = TxnResponse { header: header(5, 2), succeeded: false, responses: vec![read(vec![k1, k2])] };
    ETCD_3_5.is("KV/Txn response", 1, no);
}

#[test]
fn a_lease_is_granted_kept_asked_about_and_revoked() {
    ETCD_3_5.is("Lease/LeaseGrant request", 0, LeaseGrantRequest { ttl: 30, id: 0 });
    let granted = LeaseGrantResponse { header: header(6, 2), id: LEASE, ttl: 30, error: String::new() };
    ETCD_3_5.is("Lease/LeaseGrant response", 0, granted);
    ETCD_3_5.is("Lease/LeaseKeepAlive request", 0, LeaseKeepAliveRequest { id: LEASE });
    let kept = LeaseKeepAliveResponse { header: header(7, 2), id: LEASE, ttl: 30 };
    ETCD_3_5.is("Lease/LeaseKeepAlive response", 0, kept);
    ETCD_3_5.is("Lease/LeaseTimeToLive request", 0, LeaseTimeToLiveRequest { id: LEASE, keys: true });
    let left = LeaseTimeToLiveResponse {
        header: header(7, 2),
        id: LEASE,
        ttl: 29,
        granted_ttl: 30,
        keys: vec!["leased".into()],
    };
    ETCD_3_5.is("Lease/LeaseTimeToLive response", 0, left);
    let leases = vec![LeaseStatus { id: LEASE }];
    ETCD_3_5.is("Lease/LeaseLeases response", 0, LeaseLeasesResponse { header: header(7, 2), leases });
    ETCD_3_5.is("Lease/LeaseRevoke request", 0, LeaseRevokeRequest { id: LEASE });
    ETCD_3_5.is("Lease/LeaseRevoke response", 0, LeaseRevokeResponse { header: header(10, 2) });
}

#[test]
fn a_watch_is_created_and_delivers() {
    let create = WatchCreateRequest { key: "w".into(), range_end: "x".into(), prev_kv: true, ..Default::default() };
    let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    ETCD_3_5.is("Watch/Watch request", 0, request);
    let answer = |revision, events| WatchResponse { header: header(revision, 2), events, ..Default::default() };
    ETCD_3_5.is("Watch/Watch response", 0, WatchResponse { created: true, ..answer(7, vec![]) });
    let put = Event { r#type: EventType::Put.into(), kv: Some(key_value("w1", "1", 8, 8, 1)), prev_kv: None };
    ETCD_3_5.is("Watch/Watch response", 1, answer(8, vec![put]));
    let delete = Event {
        r#type: EventType::Delete.into(),
        kv: Some(key_value("w1", "", 0, 9, 0)),
        prev_kv: Some(key_value("w1", "1", 8, 8, 1)),
    };
    ETCD_3_5.is("Watch/Watch response", 2, answer(9, vec![delete]));
}

#[test]
fn members_are_listed_and_say_how_they_are() {
    ETCD_3_5.is("Cluster/MemberList request", 0, MemberListRequest { linearizable: true });
    let member = |id, name: &str, peer: &str, client: &str| Member {
        id,
        name: name.into(),
        peer_urls: vec![peer.into()],
        client_urls: vec![client.into()],
        is_learner: false,
    };
    let members = vec![
        member(B, "b", "http://127.0.0.1:24803", "http://127.0.0.1:24802"),
        member(A, "a", "http://127.0.0.1:24801", "http://127.0.0.1:24800"),
    ];
    ETCD_3_5.is("Cluster/MemberList response", 0, MemberListResponse { header: header(0, 2), members });
    let status = |version: &str, raft_index| StatusResponse {
        header: header(10, 2),
        version: version.into(),
        db_size: 20_480,
        leader: B,
        raft_index,
        raft_term: 2,
        raft_applied_index: raft_index,
        db_size_in_use: 16_384,
        ..Default::default()
    };
    ETCD_3_5.is("Maintenance/Status response", 0, status("3.5.30", 17));
    ETCD_3_4.is("Maintenance/Status response", 0, status("3.4.23", 17));
    ETCD_3_5.is("Maintenance/HashKV request", 0, HashKvRequest { revision: 0 });
    let hash = HashKvResponse { header: header(10, 2), hash: 1_196_219_876, compact_revision: -1, hash_revision: 0 };
    ETCD_3_5.is("Maintenance/HashKV response", 0, hash);
    ETCD_3_5.is("Maintenance/MoveLeader request", 0, MoveLeaderRequest { target_id: A });
}

#[test]
fn etcd_3_6_says_more_of_itself() {
    let status = StatusResponse {
        header: alone(),
        version: "3.6.14".into(),
        db_size: 20_480,
        leader: A,
        raft_index: 7,
        raft_term: 2,
        raft_applied_index: 7,
        db_size_in_use: 16_384,
        storage_version: "3.6.0".into(),
        db_size_quota: 2 * 1024 * 1024 * 1024,
        downgrade_info: Some(DowngradeInfo { enabled: true, target_version: "3.5.0".into() }),
        ..Default::default()
    };
    ETCD_3_6.is("Maintenance/Status response", 1, status);
    ETCD_3_6.is("Maintenance/HashKV request", 0, HashKvRequest { revision: 2 });
    let hash = HashKvResponse { header: alone(), hash: 2_827_864_405, compact_revision: -1, hash_revision: 2 };
    ETCD_3_6.is("Maintenance/HashKV response", 0, hash);
    let downgrade = DowngradeRequest { action: DowngradeAction::Enable.into(), version: "3.5".into() };
    ETCD_3_6.is("Maintenance/Downgrade request", 0, downgrade);
    ETCD_3_6.is("Maintenance/Downgrade response", 0, DowngradeResponse { header: alone(), version: "3.6".into() });
}

/// The header of the 3.6.14 member, alone in a cluster of its own.
fn alone() -> Option<ResponseHeader> {
    Some(ResponseHeader { cluster_id: 17_368_989_521_238_926_805, member_id: A, revision: 2, raft_term: 2 })
}

/// No release of etcd has it, so these bytes are read off the numbers in KEP-4647, "Client APIs Changes".
#[test]
fn the_gate_is_told() {
    let request = FeatureGateStatusRequest { features: vec!["A".into(), "Bc".into()] };
    assert_eq!(hex(&request.encode_to_vec()), "120141".to_owned() + "12024263");
    let feature = |name: &str, enabled| Feature { name: name.into(), enabled };
    let header = Some(ResponseHeader { cluster_id: 1, ..Default::default() });
    let response = FeatureGateStatusResponse { header, features: vec![feature("A", true), feature("Bc", false)] };
    assert_eq!(hex(&response.encode_to_vec()), "0a020801".to_owned() + "1a050a01411001" + "1a040a024263");
    let decoded = FeatureGateStatusResponse::decode(response.encode_to_vec().as_slice());
    assert_eq!(decoded.unwrap(), response);
}

#[test]
fn alarms_are_listed_and_cleared() {
    let alarm = |member_id| AlarmMember { member_id, alarm: AlarmType::Nospace.into() };
    let standing = AlarmResponse { header: header(13, 3), alarms: vec![alarm(A), alarm(B)] };
    ETCD_3_5.is("Maintenance/Alarm response", 1, standing);
    // 3.4 leaves the header out.
    ETCD_3_4.is("Maintenance/Alarm response", 0, AlarmResponse { header: None, alarms: vec![alarm(B)] });
    let clear = AlarmRequest { action: AlarmAction::Deactivate.into(), member_id: A, alarm: AlarmType::Nospace.into() };
    ETCD_3_5.is("Maintenance/Alarm request", 2, AlarmRequest::default());
    ETCD_3_5.is("Maintenance/Alarm request", 3, clear);
}

#[test]
fn auth_is_switched_on_and_a_token_given() {
    let user = AuthUserAddRequest {
        name: "root".into(),
        password: "secret".into(),
        options: Some(UserAddOptions { no_password: false }),
        hashed_password: String::new(),
    };
    ETCD_3_5.is("Auth/UserAdd request", 0, user);
    ETCD_3_5.is("Auth/RoleAdd request", 0, AuthRoleAddRequest { name: "root".into() });
    let grant = AuthUserGrantRoleRequest { user: "root".into(), role: "root".into() };
    ETCD_3_5.is("Auth/UserGrantRole request", 0, grant);
    ETCD_3_5.is("Auth/UserGet request", 0, AuthUserGetRequest { name: "root".into() });
    let other = header(15, 3).map(|header| ResponseHeader { member_id: A, ..header });
    ETCD_3_5.is("Auth/UserGet response", 0, AuthUserGetResponse { header: other, roles: vec!["root".into()] });
    let ask = AuthenticateRequest { name: "root".into(), password: "secret".into() };
    ETCD_3_5.is("Auth/Authenticate request", 0, ask);
    let token = "dCRxpNxBpcFOEOOP.36".into();
    ETCD_3_5.is("Auth/Authenticate response", 0, AuthenticateResponse { header: header(13, 3), token });
}

//! What etcd serves beside its own services, and what it says of users where there are none.

use proto::etcdserverpb::{
    AuthRoleListRequest, AuthStatusRequest, AuthUserListRequest, HashRequest, LeaseGrantRequest, LeaseLeasesRequest,
    LeaseTimeToLiveRequest, PutRequest, RequestOp, TxnRequest, auth_client::AuthClient, request_op::Request,
};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use crate::served::{Served, Setup, options};

#[tokio::test(flavor = "multi_thread")]
async fn a_load_balancer_is_told_that_it_serves() {
    let served = Served::start().await;
    let mut health = HealthClient::new(served.channel());
    let answer = health.check(HealthCheckRequest { service: String::new() }).await.unwrap().into_inner();
    assert_eq!(answer.status(), ServingStatus::Serving);
    let unknown = health.check(HealthCheckRequest { service: "none".into() }).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn services_and_messages_describe_themselves() {
    let served = Served::start().await;
    let ask = async |what| {
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(what) };
        let mut client = ServerReflectionClient::new(served.channel());
        let asked = client.server_reflection_info(tokio_stream::once(request)).await.unwrap();
        asked.into_inner().message().await.unwrap().unwrap().message_response.unwrap()
    };
    let MessageResponse::ListServicesResponse(listed) = ask(MessageRequest::ListServices(String::new())).await else {
        panic!("no list");
    };
    let names: Vec<_> = listed.service.iter().map(|service| service.name.as_str()).collect();
    for name in ["etcdserverpb.KV", "etcdserverpb.Maintenance", "grpc.health.v1.Health"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    let described = ask(MessageRequest::FileContainingSymbol("etcdserverpb.KV.Range".into())).await;
    assert!(matches!(described, MessageResponse::FileDescriptorResponse(_)), "{described:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_users_and_nobody_needs_a_token() {
    let served = Served::start().await;
    let mut auth = AuthClient::new(served.channel());
    let status = auth.auth_status(AuthStatusRequest {}).await.unwrap().into_inner();
    assert_eq!((status.enabled, status.auth_revision), (false, 1));
    assert_eq!(auth.user_list(AuthUserListRequest {}).await.unwrap().into_inner().users, [""; 0]);
    assert_eq!(auth.role_list(AuthRoleListRequest {}).await.unwrap().into_inner().roles, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_listed_by_their_end_and_never_have_all_their_time() {
    let served = Served::start().await;
    let mut lease = served.lease();
    for (id, ttl) in [(1, 300), (2, 100), (3, 200)] {
        lease.lease_grant(LeaseGrantRequest { ttl, id }).await.unwrap();
        let request = LeaseTimeToLiveRequest { id, keys: false };
        let answer = lease.lease_time_to_live(request).await.unwrap().into_inner();
        assert!(answer.granted_ttl == ttl && answer.ttl < ttl && answer.ttl > ttl - 60, "{answer:?}");
    }
    // Those that are granted for as long come in the order in which they were: no clock need tell them apart.
    for id in [9, 8, 7, 6] {
        lease.lease_grant(LeaseGrantRequest { ttl: 400, id }).await.unwrap();
    }
    let listed = lease.lease_leases(LeaseLeasesRequest {}).await.unwrap().into_inner();
    assert_eq!(listed.leases.iter().map(|lease| lease.id).collect::<Vec<_>>(), [2, 3, 1, 9, 8, 7, 6]);
}

/// How often the member has started is not in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_hash_is_of_what_clients_have_written() {
    let hash = async |served: &Served| served.maintenance().hash(HashRequest {}).await.unwrap().into_inner().hash;
    let (one, other) = (Served::start().await, Served::start().await);
    let put = || PutRequest { key: b"k".to_vec(), value: b"v".to_vec(), ..PutRequest::default() };
    one.kv().put(put()).await.unwrap();
    assert_ne!(hash(&one).await, hash(&other).await);
    other.kv().put(put()).await.unwrap();
    assert_eq!(hash(&one).await, hash(&other).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_bounds_requests_as_its_flags_say() {
    let options = node::serve::ServeOptions { max_txn_operations: 2, max_request_bytes: 1000, ..options() };
    let served = Served::set_up(Setup { options, ..Setup::default() }).await;
    let put = |bytes| PutRequest { key: b"k".to_vec(), value: vec![0; bytes], ..PutRequest::default() };
    served.kv().put(put(900)).await.unwrap();
    let refused = served.kv().put(put(1000)).await.unwrap_err();
    assert_eq!(refused.message(), "etcdserver: request is too large");
    let operation = |key: u8| RequestOp {
        request: Some(Request::RequestPut(PutRequest { key: vec![key], ..PutRequest::default() })),
    };
    let txn = |count| TxnRequest { success: (0..count).map(operation).collect(), ..TxnRequest::default() };
    served.kv().txn(txn(2)).await.unwrap();
    let refused = served.kv().txn(txn(3)).await.unwrap_err();
    assert_eq!(refused.message(), "etcdserver: too many operations in txn request");
}

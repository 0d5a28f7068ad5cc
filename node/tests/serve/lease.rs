//! Leases, where a member adds something of its own: ids, the least time, keep-alives.

use proto::etcdserverpb::{LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::served::Served;

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_without_an_id_is_given_one_of_its_own() {
    let served = Served::start().await;
    let mut ids = Vec::new();
    for _ in 0..100 {
        let granted = served.lease().lease_grant(LeaseGrantRequest { ttl: 60, id: 0 }).await.unwrap().into_inner();
        assert!(granted.id > 0 && !ids.contains(&granted.id), "{granted:?} after {ids:?}");
        ids.push(granted.id);
    }
}

/// Else it would end while a leader is elected.
#[tokio::test(flavor = "multi_thread")]
async fn no_lease_is_shorter_than_an_election_and_a_half() {
    let served = Served::start().await;
    for (asked, given) in [(0, 2), (1, 2), (2, 2), (3, 3)] {
        let granted = served.lease().lease_grant(LeaseGrantRequest { ttl: asked, id: 0 }).await.unwrap();
        assert_eq!(granted.into_inner().ttl, given, "{asked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_keeps_many_leases_alive_and_outlasts_their_end() {
    let served = Served::start().await;
    let mut lease = served.lease();
    for id in [7, 8] {
        lease.lease_grant(LeaseGrantRequest { ttl: 60 * id, id }).await.unwrap();
    }
    let (requests, receiver) = mpsc::channel(1);
    let mut answers = lease.lease_keep_alive(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    for (id, ttl) in [(7, 420), (8, 480), (9, 0), (7, 420)] {
        requests.send(LeaseKeepAliveRequest { id }).await.unwrap();
        let answer = answers.message().await.unwrap().unwrap();
        assert_eq!((answer.id, answer.ttl), (id, ttl));
        assert_eq!(answer.header.unwrap().member_id, crate::served::ID.0);
    }
    lease.lease_revoke(LeaseRevokeRequest { id: 7 }).await.unwrap();
    requests.send(LeaseKeepAliveRequest { id: 7 }).await.unwrap();
    assert_eq!(answers.message().await.unwrap().unwrap().ttl, 0);
    drop(requests);
    assert_eq!(answers.message().await.unwrap(), None);
}

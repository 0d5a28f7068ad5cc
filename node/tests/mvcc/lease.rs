//! etcd, server/lease/lessor.go and server/etcdserver/api/v3rpc/lease.go.

use std::time::Duration;

use node::{
    api_error::ApiError,
    lease::{MAX_TTL_S, least_ttl_s},
    mvcc::Store,
};
use proto::{
    LeaseId,
    etcdserverpb::{
        LeaseCheckpoint, LeaseCheckpointRequest, LeaseGrantRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest,
    },
};

use crate::word::{all, delete, grant, pairs, put, put_leased, text};

#[test]
fn a_lease_is_granted_once() {
    let mut store = Store::default();
    for (id, ttl, expected) in [
        (0, 60, Err(ApiError::LeaseNotFound)),
        (7, MAX_TTL_S + 1, Err(ApiError::LeaseTtlTooLarge)),
        (7, MAX_TTL_S, Ok((7, MAX_TTL_S))),
        (7, 60, Err(ApiError::LeaseExists)),
        (7, MAX_TTL_S + 1, Err(ApiError::LeaseTtlTooLarge)),
        (8, 60, Ok((8, 60))),
    ] {
        let granted = store.lease_grant(&LeaseGrantRequest { id, ttl });
        assert_eq!(granted.map(|lease| (lease.id, lease.ttl)), expected, "{id} {ttl}");
    }
    assert_eq!(store.leases().iter().map(|(id, _)| id.0).collect::<Vec<_>>(), [7, 8]);
    assert_eq!(store.revision().0, 1, "leases move no revision");
}

#[test]
fn a_revoked_lease_takes_its_keys_along_at_one_revision() {
    let mut store = Store::default();
    store.lease_grant(&grant(7)).unwrap();
    store.lease_grant(&grant(8)).unwrap();
    for (key, lease) in [("a", 7), ("b", 8), ("c", 7), ("d", 7), ("e", 0)] {
        store.put(put_leased(key, "1", lease)).unwrap();
    }
    store.put(put("d", "2")).unwrap(); // no longer held
    assert_eq!(store.lease_revoke(&LeaseRevokeRequest { id: 7 }).unwrap().header.unwrap().revision, 8);
    assert_eq!(pairs(&store.range(&all()).unwrap().kvs), "b=1 d=2 e=1");
    assert_eq!(store.leases().get(LeaseId(7)), None);
    assert_eq!(store.lease_revoke(&LeaseRevokeRequest { id: 7 }), Err(ApiError::LeaseNotFound));
    assert_eq!(store.put(put_leased("a", "1", 7)), Err(ApiError::LeaseNotFound));
    assert_eq!(store.revision().0, 8);
}

#[test]
fn a_revoked_lease_without_keys_moves_nothing() {
    let mut store = Store::default();
    store.lease_grant(&grant(7)).unwrap();
    store.put(put_leased("a", "1", 7)).unwrap();
    store.delete_range(&delete("a", ""));
    assert_eq!(store.lease_revoke(&LeaseRevokeRequest { id: 7 }).unwrap().header.unwrap().revision, 3);
}

#[test]
fn a_checkpoint_says_what_a_new_leader_gives() {
    let mut store = Store::default();
    store.lease_grant(&grant(7)).unwrap();
    let mut checkpoint = |remaining_ttl| {
        let checkpoints = [7, 9].map(|id| LeaseCheckpoint { id, remaining_ttl }).to_vec(); // there is no 9
        store.lease_checkpoint(&LeaseCheckpointRequest { checkpoints });
        let lease = store.leases().get(LeaseId(7)).unwrap();
        assert!(store.leases().get(LeaseId(9)).is_none());
        (lease.granted_s(), lease.remaining_s(), lease.checkpointed_s())
    };
    assert_eq!(checkpoint(42), (60, 42, 42));
    assert_eq!(checkpoint(0), (60, 60, 0), "renewed: all of it again");
}

#[test]
fn time_to_live_says_what_was_granted_and_what_is_held() {
    let mut store = Store::default();
    store.lease_grant(&grant(7)).unwrap();
    for key in ["b", "a"] {
        store.put(put_leased(key, "1", 7)).unwrap();
    }
    for (id, keys, expected) in [(7, true, (41, 60, "a b")), (7, false, (41, 60, "")), (9, true, (-1, 0, ""))] {
        let response = store.lease_time_to_live(&LeaseTimeToLiveRequest { id, keys }, 41);
        let held = response.keys.iter().map(|key| text(key)).collect::<Vec<_>>().join(" ");
        assert_eq!((response.id, (response.ttl, response.granted_ttl, held.as_str())), (id, expected));
    }
}

#[test]
fn no_lease_is_shorter_than_an_election() {
    for (election_ms, expected) in [(1000, 2), (100, 1), (667, 2), (2000, 3), (50_000, 75)] {
        assert_eq!(least_ttl_s(Duration::from_millis(election_ms)), expected, "{election_ms} ms");
    }
}

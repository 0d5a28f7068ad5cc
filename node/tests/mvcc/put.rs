//! etcd, `Put` in server/etcdserver/txn/txn.go and `put` in server/storage/mvcc/kvstore_txn.go.

use node::{api_error::ApiError, mvcc::Store};
use proto::{LeaseId, etcdserverpb::PutRequest};

use crate::word::{all, delete, grant, pairs, put, put_leased, range, store, text, whole};

#[test]
fn each_write_moves_the_revision_up_by_one_from_two_on() {
    let mut store = Store::default();
    assert_eq!(store.range(&all()).unwrap().header.unwrap().revision, 1);
    for expected in 2..5 {
        assert_eq!(store.put(put("a", "1")).unwrap().header.unwrap().revision, expected);
    }
    assert_eq!(store.revision().0, 4);
}

#[test]
fn a_key_keeps_its_creation_and_counts_its_writes_until_it_is_deleted() {
    for (words, expected) in [
        ("a=1", "a=1 @2 (2, 1)"),
        ("a=1 b=1 a=2", "a=2 @4 (2, 2)"),
        ("a=1 a=2 -a a=3", "a=3 @5 (5, 1)"),
        ("a=1 a=", "a= @3 (2, 2)"),
    ] {
        assert_eq!(whole(&store(words).range(&range("a", "")).unwrap().kvs[0]), expected, "{words}");
    }
}

#[test]
fn a_put_answers_with_what_was_there_if_asked() {
    let asked = PutRequest { prev_kv: true, ..put("a", "9") };
    for (words, expected) in [("", None), ("a=1 a=2", Some("a=2 @3 (2, 2)")), ("a=1 -a", None)] {
        let previous = store(words).put(asked.clone()).unwrap().prev_kv;
        assert_eq!(previous.map(|kv| whole(&kv)).as_deref(), expected, "{words}");
    }
    assert_eq!(store("a=1").put(put("a", "9")).unwrap().prev_kv, None, "not asked");
}

#[test]
fn value_and_lease_are_kept_where_they_shall_be() {
    let keep = |value, lease| PutRequest { ignore_value: value, ignore_lease: lease, ..put("a", "") };
    for (request, expected) in [
        (keep(true, false), ("1", 0)),
        (keep(false, true), ("", 7)),
        (keep(true, true), ("1", 7)),
        (PutRequest { lease: 8, ..keep(true, false) }, ("1", 8)),
    ] {
        let mut store = Store::default();
        store.lease_grant(&grant(7)).unwrap();
        store.lease_grant(&grant(8)).unwrap();
        store.put(put_leased("a", "1", 7)).unwrap();
        store.put(request.clone()).unwrap();
        let kv = &store.range(&range("a", "")).unwrap().kvs[0];
        assert_eq!((text(&kv.value).as_str(), kv.lease), expected, "{request:?}");
        assert_eq!((kv.version, kv.mod_revision), (2, 3));
    }
}

#[test]
fn a_refused_put_changes_nothing() {
    let keeping = PutRequest { ignore_value: true, ..put("b", "") };
    for (request, expected) in [
        (keeping.clone(), ApiError::KeyNotFound),
        (PutRequest { ignore_lease: true, ..put("b", "1") }, ApiError::KeyNotFound),
        (put_leased("a", "2", 9), ApiError::LeaseNotFound),
        // etcd looks for the lease first.
        (PutRequest { lease: 9, ..keeping }, ApiError::LeaseNotFound),
    ] {
        let mut changed = store("a=1");
        assert_eq!(changed.put(request.clone()), Err(expected), "{request:?}");
        assert_eq!(changed, store("a=1"), "{request:?}");
    }
}

#[test]
fn a_key_is_held_by_the_lease_of_its_last_put_alone() {
    let held = |store: &Store, id| {
        let lease = store.leases().get(LeaseId(id)).unwrap();
        lease.keys().map(|key| text(key)).collect::<Vec<_>>().join(" ")
    };
    let mut store = Store::default();
    store.lease_grant(&grant(7)).unwrap();
    store.lease_grant(&grant(8)).unwrap();
    for key in ["a", "c", "b"] {
        store.put(put_leased(key, "1", 7)).unwrap();
    }
    assert_eq!((held(&store, 7).as_str(), held(&store, 8).as_str()), ("a b c", ""));
    store.put(put_leased("b", "2", 8)).unwrap();
    assert_eq!((held(&store, 7).as_str(), held(&store, 8).as_str()), ("a c", "b"));
    store.put(put("a", "2")).unwrap();
    assert_eq!((held(&store, 7).as_str(), held(&store, 8).as_str()), ("c", "b"));
    store.delete_range(&delete("b", "\0"));
    assert_eq!((held(&store, 7).as_str(), held(&store, 8).as_str()), ("", ""));
    assert_eq!(pairs(&store.range(&all()).unwrap().kvs), "a=2");
}

//! How large a store is: what is written makes it larger, what is compacted away smaller, and nothing else counts.

use node::mvcc::Restore;
use proto::etcdserverpb::PutRequest;

use crate::word::{Operation, compaction, delete, grant, put, put_leased, store, txn};

#[test]
fn a_store_is_as_large_as_its_history() {
    let mut store = store("");
    assert_eq!(store.size_bytes(), 0);
    store.put(put("key", "value")).unwrap();
    let one = store.size_bytes();
    assert!(one > 8);
    store.put(put("key", "value")).unwrap();
    let change = store.size_bytes() - one;
    assert!(
        (5..one - 3).contains(&change),
        "the older one can still be read, and the key is there once: {change} of {one}"
    );
    store.delete_range(&delete("key", ""));
    assert_eq!(store.size_bytes(), one + 2 * change - 5);
    store.compact(&compaction(3)).unwrap();
    assert_eq!(store.size_bytes(), one + 2 * change - 5, "it is hidden, and takes what it took");
    assert!(!store.forget(100));
    assert_eq!(store.size_bytes(), one + change - 5);
    store.put(put("other", "")).unwrap();
    store.compact(&compaction(5)).unwrap();
    assert!(!store.forget(100));
    assert_eq!(store.size_bytes(), one - 3, "of the first key nothing is left");
}

#[test]
fn what_is_refused_takes_nothing_and_a_lease_gives_back_what_it_took() {
    let mut store = store("a=1");
    let before = store.size_bytes();
    let refused = txn(vec![], vec![put("b", "2").op(), put_leased("c", "3", 9).op()], vec![]);
    store.txn(refused).unwrap_err();
    assert_eq!(store.size_bytes(), before);
    store.lease_grant(&grant(7)).unwrap();
    assert!(store.size_bytes() > before);
    store.lease_revoke(&proto::etcdserverpb::LeaseRevokeRequest { id: 7 }).unwrap();
    assert_eq!(store.size_bytes(), before);
}

#[test]
fn keys_that_are_there_are_counted() {
    let mut store = store("a=1");
    store.put(put("a", "2")).unwrap();
    store.put(put("b", "1")).unwrap();
    assert_eq!(store.key_count(), 2);
    for _ in 0..2 {
        store.delete_range(&delete("b", ""));
        assert_eq!(store.key_count(), 1, "what is gone is not there, whether or not it is compacted");
    }
    let refused = txn(
        vec![],
        vec![put("b", "2").op(), delete("a", "").op(), PutRequest { ignore_value: true, ..put("a", "") }.op()],
        vec![],
    );
    store.txn(refused).unwrap_err();
    assert_eq!(store.key_count(), 1, "all was taken back");
    let mut restore = Restore::default();
    store.snapshot().for_each(|piece| restore.push(&piece).unwrap());
    assert_eq!(restore.finish().unwrap().key_count(), 1);
}

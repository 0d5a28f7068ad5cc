//! etcd, `kvHasher` in server/storage/mvcc/hash.go.

use node::{api_error::ApiError, mvcc::Store};

use crate::{
    answer::answer,
    random::Step,
    word::{compaction, delete, put, put_leased, store},
};

/// Requests, and the hash that etcd 3.6.14 gave after each; `against_etcd.rs` asks a real one again.
///
/// With them goes a deletion at the very revision of a compaction, with no other key there, and one above it.
pub fn hashed() -> [(Step, u32); 10] {
    [
        (Step::Put(put("a", "1")), 2587454935),
        (Step::Delete(delete("a", "")), 3520211144),
        (Step::Compact(compaction(3)), 1084519789),
        (Step::Put(put("b", "1")), 3584256279),
        (Step::Compact(compaction(4)), 3584256279),
        (Step::Delete(delete("b", "")), 789700534),
        (Step::Put(put("c", "1")), 1721757817),
        (Step::Grant(crate::word::grant(7)), 1721757817),
        (Step::Put(put_leased("c", "2", 7)), 899081681),
        (Step::Compact(compaction(7)), 1440894043),
    ]
}

#[test]
fn hashes_are_those_that_etcd_gave() {
    let mut store = Store::default();
    for (step, expected) in hashed() {
        answer(&mut store, step.clone()).unwrap();
        assert_eq!(store.hash_kv(0).unwrap().hash, expected, "after {step:?}");
    }
}

#[test]
fn a_hash_is_of_one_revision() {
    let mut store = store("a=1 b=2 a=3 -b");
    let then = store.hash_kv(0).unwrap();
    assert_eq!((then.hash_revision, then.compact_revision, then.header.as_ref().unwrap().revision), (5, -1, 5));
    store.put(put("c", "4")).unwrap();
    assert_ne!(store.hash_kv(0).unwrap().hash, then.hash);
    assert_eq!(store.hash_kv(5).unwrap().hash, then.hash);
    store.compact(&compaction(4)).unwrap();
    for (revision, expected) in
        [(3, Err(ApiError::Compacted)), (4, Ok(4)), (7, Err(ApiError::FutureRevision)), (0, Ok(6))]
    {
        assert_eq!(store.hash_kv(revision).map(|hash| hash.hash_revision), expected, "{revision}");
    }
}

//! etcd, `kvHasher` in server/storage/mvcc/hash.go.

use node::{
    api_error::ApiError,
    mvcc::{CompactionHashes, Store},
};
use proto::etcdserverpb::HashKvResponse;

use crate::{
    answer::answer,
    random::{Random, Step},
    snapshot::restored,
    word::{Operation, compaction, delete, put, put_leased, store, txn},
};

/// Requests, and the hash that etcd 3.6.14 gave after each; `against_etcd.rs` asks a real one again.
///
/// With them goes a deletion at the very revision of a compaction, with no other key there, and one above it; and a key that is deleted
/// and written again in one transaction, with no other key there.
pub fn hashed() -> [(Step, u32); 11] {
    let written_again = txn(vec![], vec![put("d", "1").op(), delete("\0", "\0").op(), put("c", "3").op()], vec![]);
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
        (Step::Txn(written_again), 2331377476),
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

/// etcd, `testCompactionHash` in server/storage/mvcc/testutil/hash.go.
#[test]
fn a_compaction_is_hashed_as_its_revision_was_before_it() {
    let mut random = Random(7);
    let mut store = Store::default();
    for turn in 0..200 {
        for _ in 0..random.below(12) {
            let key = ["a", "b", "c", "d"][random.below(4) as usize];
            match random.once_in(5) {
                true => drop(store.delete_range(&delete(key, ""))),
                false => drop(store.put(put(key, &turn.to_string())).unwrap()),
            }
        }
        // Always there, so that no compaction leaves deletions alone.
        store.put(put("z", &turn.to_string())).unwrap();
        let at = (store.revision().0 - random.below(3)).max(store.compacted().0 + 1);
        let before = store.hash_kv(at).unwrap();
        store.compact(&compaction(at)).unwrap();
        store.put(put("later", "1")).unwrap();
        let (made, left) = store.take_unhashed().unwrap();
        let expected = HashKvResponse { header: None, ..before };
        assert_eq!(left.hash_compaction(made), expected, "turn {turn}");
        assert!(store.take_unhashed().is_none(), "once");
        if random.once_in(2) {
            store = restored(&store.snapshot().flatten().collect::<Vec<_>>(), 100).unwrap();
        }
        while store.forget(3) {}
    }
}

#[test]
fn a_compaction_that_cannot_be_hashed_any_more_is_not() {
    let mut store = store("a=1 b=2 a=3 -b a=4");
    store.compact(&compaction(3)).unwrap();
    store.compact(&compaction(4)).unwrap();
    let (made, left) = store.take_unhashed().unwrap();
    assert_eq!(left.hash_compaction(made).hash_revision, 3, "nothing was forgotten between the two");
    while store.forget(1) {}
    store.compact(&compaction(5)).unwrap();
    store.forget(1);
    assert!(store.take_unhashed().is_none(), "some of it is gone");
}

#[test]
fn the_hashes_of_ten_compactions_are_remembered() {
    let mut hashes = CompactionHashes::default();
    let of = |revision| HashKvResponse { hash: revision as u32, hash_revision: revision, ..HashKvResponse::default() };
    (1..=12).for_each(|revision| hashes.add(of(revision)));
    for (revision, expected) in [(0, None), (2, None), (3, Some(of(3))), (12, Some(of(12))), (13, None)] {
        assert_eq!(hashes.at(revision), expected);
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

//! etcd, `DeleteRange` in server/etcdserver/txn/txn.go and `deleteRange` in server/storage/mvcc/kvstore_txn.go.

use proto::etcdserverpb::DeleteRangeRequest;

use crate::word::{all, delete, pairs, store};

#[test]
fn a_deletion_takes_its_range_and_says_how_many_and_which() {
    for (key, end, deleted, previous, left, revision) in [
        ("b", "", 1, "b=2", "a=1 ba=3 c=4", 6),
        ("b", "c", 2, "b=2 ba=3", "a=1 c=4", 6), // a prefix: up to and without the next key that has not the prefix
        ("b", "\0", 3, "b=2 ba=3 c=4", "a=1", 6),
        ("\0", "\0", 4, "a=1 b=2 ba=3 c=4", "", 6),
        // Where there is nothing the revision stays.
        ("x", "", 0, "", "a=1 b=2 ba=3 c=4", 5),
        ("x", "\0", 0, "", "a=1 b=2 ba=3 c=4", 5),
        ("c", "b", 0, "", "a=1 b=2 ba=3 c=4", 5),
    ] {
        for asked in [true, false] {
            let mut store = store("a=1 b=2 ba=3 c=4");
            let response = store.delete_range(&DeleteRangeRequest { prev_kv: asked, ..delete(key, end) });
            assert_eq!(response.deleted, deleted, "{key:?} {end:?}");
            assert_eq!(pairs(&response.prev_kvs), if asked { previous } else { "" }, "{key:?} {end:?}");
            assert_eq!(response.header.unwrap().revision, revision);
            assert_eq!(store.revision().0, revision);
            assert_eq!(pairs(&store.range(&all()).unwrap().kvs), left, "{key:?} {end:?}");
        }
    }
}

#[test]
fn a_deleted_key_is_not_deleted_again() {
    let mut store = store("a=1 -a");
    assert_eq!((store.delete_range(&delete("a", "")).deleted, store.revision().0), (0, 3));
}

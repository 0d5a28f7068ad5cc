//! etcd, `executeRange` in server/etcdserver/txn/txn.go and `rangeKeys` in server/storage/mvcc/kvstore_txn.go.

use node::api_error::ApiError;
use proto::etcdserverpb::{
    RangeRequest,
    range_request::{SortOrder, SortTarget},
};

use crate::word::{all, compaction, pairs, range, store};

#[test]
fn a_range_is_answered_in_the_order_of_keys() {
    let store = store("c=3 a=1 b=2 ba=4 x=9 -x");
    for (key, end, expected) in [
        ("b", "", "b=2"),
        ("x", "", ""),
        ("b", "c", "b=2 ba=4"),
        ("b", "\0", "b=2 ba=4 c=3"),
        ("\0", "\0", "a=1 b=2 ba=4 c=3"),
        ("c", "a", ""),
    ] {
        let response = store.range(&range(key, end)).unwrap();
        assert_eq!(pairs(&response.kvs), expected, "{key:?} {end:?}");
        assert_eq!(response.count, response.kvs.len() as i64);
        assert_eq!((response.more, response.header.unwrap().revision), (false, 7));
    }
}

#[test]
fn a_limit_cuts_the_answer_but_not_the_count() {
    let store = store("a=1 b=2 c=3");
    for (limit, expected, more) in [
        (0, "a=1 b=2 c=3", false),
        (1, "a=1", true),
        (2, "a=1 b=2", true),
        (3, "a=1 b=2 c=3", false),
        (i64::MAX, "a=1 b=2 c=3", false),
        (-1, "a=1 b=2 c=3", false),
    ] {
        let response = store.range(&RangeRequest { limit, ..all() }).unwrap();
        assert_eq!((pairs(&response.kvs).as_str(), response.more, response.count), (expected, more, 3), "{limit}");
    }
}

#[test]
fn keys_or_the_count_alone_may_be_asked_for() {
    let store = store("a=1 b=2");
    let keys = store.range(&RangeRequest { keys_only: true, ..all() }).unwrap();
    assert_eq!((pairs(&keys.kvs).as_str(), keys.kvs[1].mod_revision, keys.count), ("a= b=", 3, 2));
    let count = store.range(&RangeRequest { count_only: true, limit: 1, ..all() }).unwrap();
    assert_eq!((count.kvs.len(), count.count, count.more), (0, 2, false));
}

#[test]
fn the_past_is_read_as_it_was_unless_it_is_compacted() {
    let mut store = store("a=1 b=2 a=3 -b c=5"); // at 2, 3, 4, 5, 6
    store.compact(&compaction(3)).unwrap();
    for (revision, expected) in [
        (0, Ok("a=3 c=5")),
        (-1, Ok("a=3 c=5")),
        (6, Ok("a=3 c=5")),
        (7, Err(ApiError::FutureRevision)),
        (5, Ok("a=3")),
        (4, Ok("a=3 b=2")),
        (3, Ok("a=1 b=2")),
        (2, Err(ApiError::Compacted)),
        (1, Err(ApiError::Compacted)),
    ] {
        let response = store.range(&RangeRequest { revision, ..all() });
        // The header has the newest revision, never the one that was read.
        let response = response.map(|response| (pairs(&response.kvs), response.header.unwrap().revision));
        assert_eq!(response, expected.map(|pairs| (pairs.to_owned(), 6)), "{revision}");
    }
}

#[test]
fn an_answer_is_sorted_by_what_is_asked_for() {
    use SortOrder::{Ascend, Descend, None};
    // b: version 3, created 2, last written 7; c: 1, 3, 3; a: 2, 4, 6.
    let store = store("b=1 c=5 a=1 b=2 a=9 b=0");
    for (target, order, limit, expected) in [
        (SortTarget::Key, None, 0, "a=9 b=0 c=5"),
        (SortTarget::Key, Ascend, 0, "a=9 b=0 c=5"),
        (SortTarget::Key, Descend, 0, "c=5 b=0 a=9"),
        (SortTarget::Key, Descend, 1, "c=5"),
        (SortTarget::Version, Ascend, 0, "c=5 a=9 b=0"),
        (SortTarget::Version, Descend, 2, "b=0 a=9"),
        (SortTarget::Create, Ascend, 0, "b=0 c=5 a=9"),
        (SortTarget::Create, Descend, 0, "a=9 c=5 b=0"),
        (SortTarget::Mod, Ascend, 0, "c=5 a=9 b=0"),
        (SortTarget::Mod, Descend, 0, "b=0 a=9 c=5"),
        (SortTarget::Value, Ascend, 0, "b=0 c=5 a=9"),
        (SortTarget::Value, Descend, 0, "a=9 c=5 b=0"),
        // Without a direction it ascends; but the limit is applied first, and lets one more key through.
        (SortTarget::Mod, None, 0, "c=5 a=9 b=0"),
        (SortTarget::Mod, None, 1, "a=9"),
    ] {
        let (sort_target, sort_order) = (target as i32, order as i32);
        let response = store.range(&RangeRequest { sort_target, sort_order, limit, ..all() }).unwrap();
        assert_eq!(pairs(&response.kvs), expected, "{target:?} {order:?} {limit}");
        assert_eq!((response.count, response.more), (3, limit != 0));
    }
}

#[test]
fn keys_that_compare_equal_stay_in_the_order_of_keys() {
    let store = store("b=1 a=1 c=1");
    for order in [SortOrder::Ascend, SortOrder::Descend] {
        let request = RangeRequest { sort_target: SortTarget::Version as i32, sort_order: order as i32, ..all() };
        assert_eq!(pairs(&store.range(&request).unwrap().kvs), "a=1 b=1 c=1", "{order:?}");
    }
}

#[test]
fn revisions_filter_the_answer_but_not_the_count() {
    let store = store("a=1 b=2 c=3 a=4"); // a: created 2, written 5; b: 3; c: 4
    let none = RangeRequest::default();
    for (filter, expected) in [
        (RangeRequest { min_mod_revision: 4, ..none.clone() }, "a=4 c=3"),
        (RangeRequest { max_mod_revision: 4, ..none.clone() }, "b=2 c=3"),
        (RangeRequest { min_create_revision: 3, ..none.clone() }, "b=2 c=3"),
        (RangeRequest { max_create_revision: 3, ..none.clone() }, "a=4 b=2"),
        (RangeRequest { min_create_revision: 3, max_mod_revision: 3, ..none.clone() }, "b=2"),
        // The limit counts what passed.
        (RangeRequest { min_mod_revision: 4, limit: 1, ..none.clone() }, "a=4"),
    ] {
        let response =
            store.range(&RangeRequest { key: b"\0".into(), range_end: b"\0".into(), ..filter.clone() }).unwrap();
        assert_eq!((pairs(&response.kvs).as_str(), response.count), (expected, 3), "{filter:?}");
        assert_eq!(response.more, filter.limit != 0);
    }
}

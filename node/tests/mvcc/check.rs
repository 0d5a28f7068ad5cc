//! etcd, server/etcdserver/api/v3rpc/key.go and api/v3rpc/rpctypes/error.go.

use node::{
    api_error::{ApiError, Code},
    mvcc::check,
};
use proto::etcdserverpb::{PutRequest, RangeRequest, RequestOp, TxnRequest, compare};

use crate::word::{Operation, compare as condition, delete, put, put_leased, range, txn};

#[test]
fn codes_and_texts_are_etcds() {
    use ApiError::*;
    use Code::*;
    for (error, code, text) in [
        (EmptyKey, InvalidArgument, "etcdserver: key is not provided"),
        (KeyNotFound, InvalidArgument, "etcdserver: key not found"),
        (ValueProvided, InvalidArgument, "etcdserver: value is provided"),
        (LeaseProvided, InvalidArgument, "etcdserver: lease is provided"),
        (TooManyOperations, InvalidArgument, "etcdserver: too many operations in txn request"),
        (DuplicateKey, InvalidArgument, "etcdserver: duplicate key given in txn request"),
        (InvalidSortOption, InvalidArgument, "etcdserver: invalid sort option"),
        (Compacted, OutOfRange, "etcdserver: mvcc: required revision has been compacted"),
        (FutureRevision, OutOfRange, "etcdserver: mvcc: required revision is a future revision"),
        (LeaseNotFound, NotFound, "etcdserver: requested lease not found"),
        (LeaseExists, FailedPrecondition, "etcdserver: lease already exists"),
        (LeaseTtlTooLarge, OutOfRange, "etcdserver: too large lease TTL"),
    ] {
        assert_eq!((error.code(), error.to_string().as_str()), (code, text));
    }
    assert_eq!([InvalidArgument as i32, NotFound as i32, FailedPrecondition as i32, OutOfRange as i32], [3, 5, 9, 11]);
}

#[test]
fn single_requests_are_checked_in_etcds_order() {
    let keep = |request| PutRequest { ignore_value: true, ignore_lease: true, ..request };
    for (request, expected) in [
        (put("a", ""), Ok(())),
        (put("", "1"), Err(ApiError::EmptyKey)),
        (keep(put("a", "")), Ok(())),
        (keep(put("", "1")), Err(ApiError::EmptyKey)),
        (keep(put_leased("a", "1", 7)), Err(ApiError::ValueProvided)),
        (keep(put_leased("a", "", 7)), Err(ApiError::LeaseProvided)),
    ] {
        assert_eq!(check::put(&request), expected, "{request:?}");
    }
    for (key, sort_order, sort_target, expected) in [
        ("a", 2, 4, Ok(())),
        ("", 3, 5, Err(ApiError::EmptyKey)),
        ("a", 3, 0, Err(ApiError::InvalidSortOption)),
        ("a", 0, 5, Err(ApiError::InvalidSortOption)),
        ("a", -1, 0, Err(ApiError::InvalidSortOption)),
    ] {
        let request = RangeRequest { sort_order, sort_target, ..range(key, "") };
        assert_eq!(check::range(&request), expected, "{request:?}");
    }
    assert_eq!(check::delete_range(&delete("", "z")), Err(ApiError::EmptyKey));
    assert_eq!(check::delete_range(&delete("a", "z")), Ok(()));
}

#[test]
fn a_transaction_is_checked_through_and_through() {
    let of = |operation: RequestOp| txn(vec![], vec![operation], vec![]);
    let on = |key: &str| {
        let target = compare::TargetUnion::Version(0);
        condition(key, compare::CompareResult::Equal, compare::CompareTarget::Version, target)
    };
    let empty = RequestOp::default();
    for (request, expected) in [
        (txn(vec![], vec![], vec![]), Ok(())),
        (of(put("a", "1").op()), Ok(())),
        (of(put("", "1").op()), Err(ApiError::EmptyKey)),
        (txn(vec![], vec![], vec![range("", "").op()]), Err(ApiError::EmptyKey)),
        (of(of(delete("", "").op()).op()), Err(ApiError::EmptyKey)),
        (of(empty.clone()), Err(ApiError::KeyNotFound)),
        (txn(vec![on("")], vec![empty.clone()], vec![]), Err(ApiError::EmptyKey)),
        (txn(vec![on("a")], vec![empty], vec![put("", "").op()]), Err(ApiError::KeyNotFound)),
        // What is wrong with an operation comes before what overlaps.
        (txn(vec![], vec![put("a", "").op(), put("a", "").op(), put("", "").op()], vec![]), Err(ApiError::EmptyKey)),
        (txn(vec![], vec![], vec![put("a", "").op(), put("a", "").op()]), Err(ApiError::DuplicateKey)),
    ] {
        assert_eq!(check::txn(&request, check::MAX_TXN_OPERATIONS), expected, "{request:?}");
    }
}

#[test]
fn operations_are_counted_in_the_longest_list_and_along_the_nesting() {
    let reads = |count: usize| vec![range("a", "").op(); count];
    let nested = |inner: TxnRequest, beside: usize| txn(vec![], [vec![inner.op()], reads(beside)].concat(), vec![]);
    for (request, most, fits) in [
        (txn(vec![], reads(3), reads(3)), 3, true),
        (txn(vec![], reads(1), reads(4)), 3, false),
        (nested(txn(vec![], reads(2), vec![]), 0), 3, true),
        (nested(txn(vec![], reads(2), vec![]), 1), 3, false),
        (nested(txn(vec![], vec![], vec![]), 2), 3, true), // an empty one fits where nothing is left
    ] {
        let expected = if fits { Ok(()) } else { Err(ApiError::TooManyOperations) };
        assert_eq!(check::txn(&request, most), expected, "{request:?} of {most}");
    }
}

#[test]
fn a_key_is_written_once_as_far_as_etcd_looks() {
    let write = |key: &str| put(key, "1").op();
    let erase = |key: &str, end: &str| delete(key, end).op();
    let both = |success: Vec<RequestOp>, failure: Vec<RequestOp>| txn(vec![], success, failure).op();
    let then = |success: Vec<RequestOp>| both(success, vec![]);
    for (operations, allowed) in [
        (vec![write("a"), write("b")], true),
        (vec![write("a"), write("a")], false),
        (vec![write("a"), erase("a", "")], false),
        (vec![erase("a", ""), write("a")], false),
        (vec![erase("a", "c"), write("b")], false),
        (vec![erase("a", "c"), write("c")], true),
        (vec![erase("a", "c"), erase("c", "f"), erase("x", "z"), write("d")], false),
        (vec![erase("c", "f"), erase("a", "z"), erase("d", "e"), write("p")], false),
        (vec![erase("a", "c"), erase("e", "g"), write("d")], true),
        (vec![erase("a", ""), erase("a", "c"), erase("b", "")], true), // deletions may overlap
        (vec![erase("c", "a"), write("b")], true),
        // A deletion without end is not seen to overlap.
        (vec![erase("a", "\0"), write("b")], true),
        // Nested.
        (vec![then(vec![write("a")]), write("a")], false),
        (vec![then(vec![erase("a", "c")]), write("b")], false),
        (vec![then(vec![write("b")]), erase("a", "c")], false),
        (vec![then(vec![write("a")]), then(vec![write("a")])], false),
        (vec![both(vec![write("a")], vec![write("a")])], true), // only one of the two is done
        (vec![then(vec![write("a")]), both(vec![], vec![write("a")])], false),
        (vec![then(vec![erase("a", "")]), then(vec![write("a")])], false),
        (vec![then(vec![write("a")]), then(vec![erase("a", "")])], true), // not seen in this order
        (vec![both(vec![write("a"), write("a")], vec![])], false),
        (vec![then(vec![then(vec![write("a")])]), write("a")], false),
    ] {
        let expected = if allowed { Ok(()) } else { Err(ApiError::DuplicateKey) };
        assert_eq!(check::txn(&txn(vec![], operations.clone(), vec![]), 128), expected, "{operations:?}");
        assert_eq!(check::txn(&txn(vec![], vec![], operations), 128), expected);
    }
}

//! etcd, `Txn` in server/etcdserver/txn/txn.go.

use node::{
    api_error::ApiError,
    mvcc::{Store, is_read_only, is_serializable},
};
use proto::etcdserverpb::{
    Compare, PutRequest, RangeRequest, TxnRequest, TxnResponse,
    compare::{CompareResult, CompareTarget, TargetUnion},
    response_op::Response,
};

use crate::word::{
    Operation, all, compaction, compare, delete, grant, pairs, put, put_leased, range, store, txn, whole,
};

#[test]
fn a_condition_holds_as_etcd_has_it() {
    use CompareResult::{Equal, Greater, Less, NotEqual};
    use CompareTarget::{Create, Lease, Mod, Value, Version};
    let mut store = store("a=1 b=2");
    store.lease_grant(&grant(7)).unwrap();
    store.put(put_leased("a", "5", 7)).unwrap(); // a: created 2, written 4, version 2, lease 7
    let value = |text: &str| TargetUnion::Value(text.into());
    for (key, result, target, operand, expected) in [
        ("a", Equal, Version, TargetUnion::Version(2), true),
        ("a", NotEqual, Version, TargetUnion::Version(2), false),
        ("a", Greater, Version, TargetUnion::Version(1), true),
        ("a", Greater, Version, TargetUnion::Version(2), false),
        ("a", Less, Version, TargetUnion::Version(3), true),
        ("a", Equal, Create, TargetUnion::CreateRevision(2), true),
        ("a", Less, Create, TargetUnion::CreateRevision(2), false),
        ("a", Equal, Mod, TargetUnion::ModRevision(4), true),
        ("a", Greater, Mod, TargetUnion::ModRevision(4), false),
        ("a", Equal, Lease, TargetUnion::Lease(7), true),
        ("b", Equal, Lease, TargetUnion::Lease(0), true),
        ("a", Equal, Value, value("5"), true),
        ("a", Less, Value, value("50"), true),
        ("a", Greater, Value, value("50"), false),
        // An absent key: revisions, version and lease are 0, no condition on its value holds.
        ("x", Equal, Version, TargetUnion::Version(0), true),
        ("x", Equal, Create, TargetUnion::CreateRevision(0), true),
        ("x", Less, Mod, TargetUnion::ModRevision(1), true),
        ("x", Equal, Lease, TargetUnion::Lease(0), true),
        ("x", NotEqual, Value, value("5"), false),
        ("x", Equal, Value, value(""), false),
        // A value of another kind than the target counts as 0 or nothing.
        ("a", Greater, Mod, TargetUnion::Version(9), true),
        ("a", Greater, Value, TargetUnion::Version(9), true),
    ] {
        let condition = compare(key, result, target, operand.clone());
        assert_eq!(succeeds(&store, vec![condition]), expected, "{key} {result:?} {target:?} {operand:?}");
    }
}

#[test]
fn conditions_on_a_range_hold_for_each_of_its_keys() {
    let store = store("a=1 b=2 b=3");
    let over = |key: &str, end: &str, result, version| Compare {
        range_end: end.into(),
        ..compare(key, result, CompareTarget::Version, TargetUnion::Version(version))
    };
    for (key, end, result, version, expected) in [
        ("a", "c", CompareResult::Greater, 0, true),
        ("a", "c", CompareResult::Equal, 1, false),
        ("b", "\0", CompareResult::Equal, 2, true),
        ("x", "\0", CompareResult::Equal, 0, true), // none there: as an absent key
        ("x", "\0", CompareResult::Greater, 0, false),
    ] {
        assert_eq!(succeeds(&store, vec![over(key, end, result, version)]), expected, "{key:?} {end:?} {version}");
    }
    let (yes, no) = (over("a", "", CompareResult::Equal, 1), over("a", "", CompareResult::Equal, 2));
    assert!(succeeds(&store, vec![]) && succeeds(&store, vec![yes.clone(), yes.clone()]));
    assert!(!succeeds(&store, vec![yes, no]), "all must hold");
}

#[test]
fn an_unknown_way_to_compare_is_judged_as_etcd_does() {
    let store = store("a=1");
    let condition = compare("a", CompareResult::Less, CompareTarget::Version, TargetUnion::Version(0));
    assert!(succeeds(&store, vec![Compare { result: 99, ..condition.clone() }]));
    assert!(!succeeds(&store, vec![Compare { target: 99, ..condition.clone() }]));
    assert!(succeeds(&store, vec![Compare { target: 99, result: CompareResult::Equal as i32, ..condition }]));
}

#[test]
fn all_writes_share_one_revision_and_reads_see_those_before_them() {
    let mut store = store("a=1 b=2");
    let past = RangeRequest { revision: 3, ..all() };
    let request = txn(
        vec![],
        vec![
            range("\0", "\0").op(),
            put("a", "9").op(),
            all().op(),
            delete("b", "").op(),
            past.op(),
            put("c", "9").op(),
            all().op(),
        ],
        vec![],
    );
    let response = store.txn(request).unwrap();
    assert_eq!(shown(&response), "[a=1 b=2]@3 put@4 [a=9 b=2]@4 del1@4 [a=1 b=2]@4 put@4 [a=9 c=9]@4");
    assert_eq!((response.header.unwrap().revision, store.revision().0), (4, 4));
    let kvs = store.range(&all()).unwrap().kvs;
    assert_eq!(kvs.iter().map(whole).collect::<Vec<_>>(), ["a=9 @4 (2, 2)", "c=9 @4 (4, 1)"]);
}

#[test]
fn a_transaction_that_changes_nothing_moves_nothing() {
    let mut changed = store("a=1");
    for request in [
        txn(vec![], vec![], vec![]),
        txn(vec![], vec![all().op()], vec![]),
        txn(vec![], vec![delete("x", "\0").op()], vec![]),
        txn(vec![], vec![txn(vec![], vec![delete("x", "").op()], vec![]).op()], vec![]),
        txn(vec![never()], vec![put("a", "2").op()], vec![]),
    ] {
        assert_eq!(changed.txn(request.clone()).unwrap().header.unwrap().revision, 2, "{request:?}");
        assert_eq!(changed, store("a=1"), "{request:?}");
    }
}

#[test]
fn a_nested_transaction_is_judged_before_the_first_write() {
    let version = |version| compare("a", CompareResult::Equal, CompareTarget::Version, TargetUnion::Version(version));
    let nested = txn(
        vec![version(1)],
        vec![put("b", "as it was").op(), txn(vec![never()], vec![], vec![put("c", "1").op(), all().op()]).op()],
        vec![put("b", "as it is").op()],
    );
    let mut store = store("a=1");
    let response = store.txn(txn(vec![version(1)], vec![put("a", "2").op(), nested.op()], vec![])).unwrap();
    assert_eq!(shown(&response), "put@3 (put@3 (put@3 [a=2 b=as it was c=1]@3))");
    let Some(Response::ResponseTxn(inner)) = &response.responses[1].response else { panic!("{response:?}") };
    assert_eq!((inner.succeeded, inner.header.as_ref().unwrap().revision), (true, 0), "etcd leaves it empty");
}

#[test]
fn a_refused_operation_leaves_nothing_of_the_transaction() {
    let keeping = |key: &str| PutRequest { ignore_value: true, ..put(key, "") };
    let old = |revision| RangeRequest { revision, ..all() };
    let prepared = || {
        let mut store = store("a=1 b=2 a=3");
        store.lease_grant(&grant(7)).unwrap();
        store.put(put_leased("a", "4", 7)).unwrap();
        store.compact(&compaction(3)).unwrap();
        store
    };
    for (operation, expected) in [
        (old(6).op(), ApiError::FutureRevision), // even though the put before it would be at 6
        (old(2).op(), ApiError::Compacted),
        (old(-1).op(), ApiError::Compacted), // outside a transaction it means the newest
        (keeping("x").op(), ApiError::KeyNotFound),
        (put_leased("x", "1", 9).op(), ApiError::LeaseNotFound),
        (PutRequest { lease: 9, ..keeping("x") }.op(), ApiError::KeyNotFound), // unlike in a put of its own
        (txn(vec![], vec![old(6).op()], vec![]).op(), ApiError::FutureRevision),
        // Written or deleted earlier in the transaction: only found out when other changes were made already. The check of
        // requests lets a deletion without end pass.
        (keeping("b").op(), ApiError::KeyNotFound),
    ] {
        let mut store = prepared();
        let before = vec![put("a", "9").op(), put("new", "1").op(), delete("b", "\0").op()];
        let request = txn(vec![], [before, vec![operation]].concat(), vec![]);
        assert_eq!(store.txn(request.clone()), Err(expected), "{request:?}");
        assert_eq!(store, prepared(), "{request:?}");
    }
    // The branch that is not taken is not looked at.
    assert!(prepared().txn(txn(vec![never()], vec![old(99).op()], vec![])).is_ok());
}

#[test]
fn a_key_may_be_deleted_and_written_again_at_one_revision() {
    let mut store = store("a=1 a=2");
    let request = txn(vec![], vec![delete("\0", "\0").op(), put("a", "3").op()], vec![]);
    store.txn(request).unwrap();
    assert_eq!(whole(&store.range(&range("a", "")).unwrap().kvs[0]), "a=3 @4 (4, 1)");
    store.compact(&compaction(4)).unwrap();
    assert_eq!(whole(&store.range(&range("a", "")).unwrap().kvs[0]), "a=3 @4 (4, 1)");
}

#[test]
fn reading_transactions_are_told_from_writing_ones() {
    let stale = || RangeRequest { serializable: true, ..all() }.op();
    for (request, read_only, serializable) in [
        (txn(vec![], vec![], vec![]), true, true),
        (txn(vec![never()], vec![stale()], vec![stale()]), true, true),
        (txn(vec![], vec![stale()], vec![all().op()]), true, false),
        (txn(vec![], vec![], vec![put("a", "1").op()]), false, false),
        (txn(vec![], vec![txn(vec![], vec![], vec![]).op()], vec![]), false, false), // etcd proposes any nested one
    ] {
        assert_eq!((is_read_only(&request), is_serializable(&request)), (read_only, serializable), "{request:?}");
    }
}

#[test]
fn a_reading_transaction_answers_the_same_on_both_ways() {
    let mut store = store("a=1 b=2");
    for (revision, expected) in [(0, Ok("[a=1 b=2]@3")), (2, Ok("[a=1]@3")), (4, Err(ApiError::FutureRevision))] {
        let request = txn(vec![never()], vec![], vec![RangeRequest { revision, ..all() }.op()]);
        let read = store.read_txn(&request);
        assert_eq!(read.as_ref().map(shown), expected.as_ref().map(|text| (*text).to_owned()));
        assert_eq!(store.txn(request), read);
    }
}

/// Every member performs it, and whoever waits for its answer alone has the memory and the time that its reads take.
#[test]
fn a_transaction_is_performed_without_its_reads_which_see_what_it_saw() {
    let mut store = store("a=1 b=2");
    let nested = txn(vec![], vec![all().op(), put("c", "9").op(), all().op()], vec![]);
    let request = txn(vec![], vec![all().op(), put("a", "3").op(), all().op(), nested.op()], vec![]);
    let performed = store.perform(request.clone()).unwrap();
    store.txn(txn(vec![], vec![delete("a", "z").op()], vec![])).unwrap();
    store.compact(&compaction(5)).unwrap();
    assert!(!store.forget(usize::MAX));
    let expected = "[a=1 b=2]@3 put@4 [a=3 b=2]@4 ([a=3 b=2]@4 put@4 [a=3 b=2 c=9]@4)";
    assert_eq!(shown(&performed.answer().unwrap()), expected);
    assert_eq!(shown(&self::store("a=1 b=2").txn(request).unwrap()), expected);
}

#[test]
fn a_transaction_answers_what_there_is_and_not_a_hundred_times() {
    const LARGE: usize = 1 << 20;
    for (reads, is_answered) in [(60, true), (127, false)] {
        let mut store = store(&format!("a={}", "x".repeat(LARGE)));
        let reads = || (0..reads).map(|_| range("a", "").op());
        let request = txn(vec![], reads().chain([put("b", "1").op()]).collect(), vec![]);
        let answer = store.txn(request).map(|answer| answer.responses.len());
        assert_eq!(answer, if is_answered { Ok(61) } else { Err(ApiError::AnswerTooLarge) });
        assert_eq!(pairs(&store.range(&range("b", "")).unwrap().kvs), "b=1", "it was performed");
        let read = store.read_txn(&txn(vec![], reads().collect(), vec![]));
        assert_eq!(read.is_ok(), is_answered);
    }
}

fn never() -> Compare {
    compare("a", CompareResult::Less, CompareTarget::Version, TargetUnion::Version(0))
}

fn succeeds(store: &Store, conditions: Vec<Compare>) -> bool {
    store.read_txn(&TxnRequest { compare: conditions, ..TxnRequest::default() }).unwrap().succeeded
}

/// Each answer with the revision in its header; those of a nested transaction in brackets.
fn shown(response: &TxnResponse) -> String {
    let shown = response.responses.iter().map(|response| match response.response.as_ref().unwrap() {
        Response::ResponseRange(range) => {
            format!("[{}]@{}", pairs(&range.kvs), range.header.as_ref().unwrap().revision)
        }
        Response::ResponsePut(put) => format!("put@{}", put.header.as_ref().unwrap().revision),
        Response::ResponseDeleteRange(delete) => {
            format!("del{}@{}", delete.deleted, delete.header.as_ref().unwrap().revision)
        }
        Response::ResponseTxn(nested) => format!("({})", self::shown(nested)),
    });
    shown.collect::<Vec<_>>().join(" ")
}

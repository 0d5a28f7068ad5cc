//! etcd, `Compact` in server/storage/mvcc/kvstore.go.

use node::api_error::ApiError;

use crate::word::{compaction, store};

#[test]
fn compaction_goes_forward_and_not_beyond_what_there_is() {
    let mut store = store("a=1 a=2 a=3 a=4"); // up to 5
    for (revision, expected) in [
        (-1, Err(ApiError::Compacted)),
        (0, Ok(0)), // etcd takes it once
        (0, Err(ApiError::Compacted)),
        (3, Ok(3)),
        (3, Err(ApiError::Compacted)),
        (2, Err(ApiError::Compacted)),
        (6, Err(ApiError::FutureRevision)),
        (i64::MAX, Err(ApiError::FutureRevision)),
        (5, Ok(5)),
    ] {
        let before = store.clone();
        let response = store.compact(&compaction(revision));
        assert_eq!(response.as_ref().map(|_| store.compacted().0), expected.as_ref().copied(), "{revision}");
        match response {
            Ok(response) => assert_eq!(response.header.unwrap().revision, 5),
            Err(_) => assert_eq!(store, before),
        }
    }
}

#[test]
fn a_store_that_compacted_twice_equals_one_that_compacted_once() {
    let words = "a=1 b=1 -a a=2 b=2 -b c=1 c=2 -c a=3";
    let newest = store(words).revision().0;
    for last in 1..=newest {
        let mut once = store(words);
        once.compact(&compaction(last)).unwrap();
        for first in 0..last {
            let mut twice = store(words);
            twice.compact(&compaction(first)).unwrap();
            twice.compact(&compaction(last)).unwrap();
            assert_eq!(twice, once, "{first} then {last}");
        }
    }
}

#[test]
fn what_is_deleted_leaves_nothing_once_it_is_compacted() {
    let compacted = |words| {
        let mut store = store(words);
        store.compact(&compaction(store.revision().0)).unwrap();
        store
    };
    assert_eq!(compacted("a=1 b=1 -a -b c=1 -c d=1"), compacted("x=1 x=2 x=3 x=4 x=5 -x d=1"));
}

/// A step looks at so many changes and no more, whatever is kept of them; a later compaction begins anew.
#[test]
fn forgetting_goes_in_steps_and_nobody_sees_how_far_it_is() {
    let words = "a=1 a=2 b=1 -b c=1 a=3 -c";
    let whole = store(words);
    for revision in 2..=whole.revision().0 {
        let mut stepwise = store(words);
        stepwise.compact(&compaction(revision)).unwrap();
        let mut at_once = stepwise.clone();
        assert!(!at_once.forget(usize::MAX));
        let mut steps = 0;
        while stepwise.forget(1) {
            steps += 1;
            assert_eq!(stepwise, at_once, "{revision} after {steps}");
            assert!(stepwise.snapshot().eq(at_once.snapshot()));
        }
        assert_eq!(steps, revision - 1, "one for each change up to {revision}");
        assert_eq!(stepwise.size_bytes(), at_once.size_bytes());
        assert!(!stepwise.forget(1), "nothing more");
    }
}

//! etcd, server/storage/mvcc/watchable_store.go; `sendLoop` in server/etcdserver/api/v3rpc/watch.go for what was before.

use node::{
    api_error::ApiError,
    mvcc::{KeyRange, Store},
};
use proto::{
    Revision,
    mvccpb::{Event, event::EventType},
};

use crate::word::{Operation, compaction, delete, grant, put, put_leased, store, text, txn};

#[test]
fn a_watch_is_told_each_change_from_its_start_on() {
    let store = store("a=1 b=2 a=3 -a.. c=4");
    for (start, key, end, expected) in [
        (0, "\0", "\0", "a=1@2 b=2@3 a=3@4 -a@5 -b@5 c=4@6"),
        (2, "\0", "\0", "a=1@2 b=2@3 a=3@4 -a@5 -b@5 c=4@6"),
        (4, "\0", "\0", "a=3@4 -a@5 -b@5 c=4@6"),
        (6, "\0", "\0", "c=4@6"),
        (7, "\0", "\0", ""),
        (99, "\0", "\0", ""),
        (0, "a", "", "a=1@2 a=3@4 -a@5"),
        (3, "a", "c", "b=2@3 a=3@4 -a@5 -b@5"),
    ] {
        assert_eq!(told(&store, start, key, end), Ok(expected.into()), "{start} {key:?} {end:?}");
    }
}

#[test]
fn changes_of_one_revision_come_in_the_order_they_were_made() {
    let mut store = store("b=1");
    let request = vec![put("c", "1").op(), delete("b", "").op(), put("a", "1").op()];
    store.txn(txn(vec![], request, vec![])).unwrap();
    store.lease_grant(&grant(7)).unwrap();
    for key in ["z", "y"] {
        store.put(put_leased(key, "1", 7)).unwrap();
    }
    store.lease_revoke(&proto::etcdserverpb::LeaseRevokeRequest { id: 7 }).unwrap();
    assert_eq!(told(&store, 3, "\0", "\0"), Ok("c=1@3 -b@3 a=1@3 z=1@4 y=1@5 -y@6 -z@6".into()));
}

#[test]
fn a_refused_transaction_is_not_heard_of() {
    let mut store = store("a=1");
    let request = vec![put("a", "2").op(), put_leased("b", "1", 9).op()];
    assert_eq!(store.txn(txn(vec![], request, vec![])), Err(ApiError::LeaseNotFound));
    assert_eq!(told(&store, 0, "\0", "\0"), Ok("a=1@2".into()));
}

#[test]
fn a_watch_starts_where_history_begins_or_later() {
    let mut store = store("a=1 b=2 -a c=4 b=5"); // 2 to 6
    store.compact(&compaction(4)).unwrap();
    for (start, expected) in [
        (0, Err(ApiError::Compacted)),
        (3, Err(ApiError::Compacted)),
        (4, Ok("-a@4 c=4@5 b=5@6")), // the deletion at that very revision is still told
        (5, Ok("c=4@5 b=5@6")),
    ] {
        assert_eq!(told(&store, start, "\0", "\0"), expected.map(str::to_owned), "{start}");
    }
}

#[test]
fn an_event_carries_what_was_before_its_revision_unless_that_is_compacted() {
    let mut store = store("a=1 a=2 -a a=4 a=5"); // 2 to 6
    let before = |store: &Store, start| -> Vec<String> {
        let events = store.events_since(Revision(start), KeyRange::One(b"a"), true).unwrap();
        events.map(|event| event.prev_kv.map_or("none".into(), |kv| text(&kv.value))).collect()
    };
    assert_eq!(before(&store, 0), ["none", "1", "2", "none", "4"]);
    assert!(store.events_since(Revision(0), KeyRange::One(b"a"), false).unwrap().all(|event| event.prev_kv.is_none()));
    store.compact(&compaction(3)).unwrap();
    assert_eq!(before(&store, 3), ["none", "2", "none", "4"]);
    store.compact(&compaction(4)).unwrap();
    assert_eq!(before(&store, 4), ["none", "none", "4"]);
}

fn told(store: &Store, start: i64, key: &str, end: &str) -> Result<String, ApiError> {
    let range = KeyRange::new(key.as_bytes(), end.as_bytes());
    let events = store.events_since(Revision(start), range, false)?;
    Ok(events.map(|event| shown(&event)).collect::<Vec<_>>().join(" "))
}

fn shown(event: &Event) -> String {
    let kv = event.kv.as_ref().unwrap();
    match event.r#type() {
        EventType::Put => format!("{}={}@{}", text(&kv.key), text(&kv.value), kv.mod_revision),
        EventType::Delete => {
            assert_eq!((kv.create_revision, kv.version, kv.lease, kv.value.len()), (0, 0, 0, 0));
            format!("-{}@{}", text(&kv.key), kv.mod_revision)
        }
    }
}

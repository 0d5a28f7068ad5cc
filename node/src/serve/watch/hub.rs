//! Tells each stream which of its watches a change is for, so that a stream looks at the store only when there is something for
//! it there: one task looks at each change once, however many watches there are.

use std::{
    collections::BTreeMap,
    future::pending,
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use proto::Revision;
use tokio::{
    sync::{Notify, watch},
    task::yield_now,
};

use super::{counts::WatchCounts, index::Index};
use crate::{
    member::Member,
    mvcc::{Changed, KeyRange},
};

/// So many changes are taken out of the store at once: nothing is applied meanwhile.
const MOST_CHANGES: usize = 1000;

/// The watches of all streams. Every clone is the same.
#[derive(Clone, Debug, Default)]
pub(in crate::serve) struct Hub {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    watches: Mutex<Index<Arc<Mailbox>>>,
    streams: AtomicU64,
    counts: WatchCounts,
    /// Up to here all streams were told.
    seen: watch::Sender<Revision>,
}

/// Tells watches what has changed from `next` on.
fn tell(watches: &Index<Arc<Mailbox>>, next: Revision, changed: &Changed) {
    if !changed.is_whole {
        // Some were forgotten before they were looked at: nobody knows which watches have missed one. This alone: a stream takes
        // what it is told at any moment, and would go on from a later change, as if it had missed none.
        return watches.all().for_each(|((_, id), mailbox)| mailbox.touch(*id, next));
    }
    for (at, key) in &changed.keys {
        watches.for_each(key, |(_, id), mailbox| mailbox.touch(*id, *at));
    }
}

/// The watches of a stream that changes are for.
#[derive(Debug, Default)]
struct Mailbox {
    /// Each with the lowest revision that has one, of those that the stream has not taken yet.
    touched: Mutex<BTreeMap<i64, Revision>>,
    changed: Notify,
}

impl Mailbox {
    fn touch(&self, watch: i64, at: Revision) {
        lock(&self.touched).entry(watch).and_modify(|first| *first = at.min(*first)).or_insert(at);
        self.changed.notify_one();
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// Begins with what is there: a watch that comes from now on is told of whatever changes after that.
    pub(in crate::serve) fn new(member: &Member) -> Self {
        let hub = Self::default();
        hub.shared.seen.send_replace(member.read(|state| state.keys.revision()));
        hub
    }

    /// Looks at all that changes, for as long as anything does.
    pub(in crate::serve) async fn run(self, member: Member) {
        let mut applied = member.applied();
        loop {
            while self.step(&member) {
                yield_now().await;
            }
            if applied.changed().await.is_err() {
                return;
            }
        }
    }

    /// Passes on the next changes; whether there may be more.
    fn step(&self, member: &Member) -> bool {
        let next = Revision(self.seen().0 + 1);
        let changed = member.read(|state| state.keys.changed_since(next, MOST_CHANGES));
        tell(&lock(&self.shared.watches), next, &changed);
        self.shared.seen.send_if_modified(|seen| mem::replace(seen, changed.up_to) != changed.up_to);
        changed.has_more
    }

    fn seen(&self) -> Revision {
        *self.shared.seen.borrow()
    }

    /// What is counted of all.
    pub(in crate::serve) fn counts(&self) -> &WatchCounts {
        &self.shared.counts
    }

    /// For a new stream.
    pub(super) fn subscribe(&self) -> Subscription {
        let stream = self.shared.streams.fetch_add(1, Ordering::Relaxed);
        self.counts().streams.add(1);
        Subscription { hub: self.clone(), stream, mailbox: Arc::default(), seen: self.shared.seen.subscribe() }
    }
}

/// A stream's own part of it.
#[derive(Debug)]
pub(super) struct Subscription {
    hub: Hub,
    stream: u64,
    mailbox: Arc<Mailbox>,
    seen: watch::Receiver<Revision>,
}

impl Subscription {
    /// Hears of this watch from now on. What was before it must be looked for after this.
    pub(super) fn add(&self, id: i64, range: KeyRange<'_>) {
        lock(&self.hub.shared.watches).insert(range, (self.stream, id), self.mailbox.clone());
        self.counts().watches.add(1);
    }

    pub(super) fn remove(&self, id: i64, range: KeyRange<'_>) {
        lock(&self.hub.shared.watches).remove(range, (self.stream, id));
        self.counts().watches.sub(1);
    }

    pub(super) fn counts(&self) -> &WatchCounts {
        self.hub.counts()
    }

    /// The watches that something is new for, each with the first revision that has it; and up to where all are told of here.
    pub(super) fn take(&self) -> (BTreeMap<i64, Revision>, Revision) {
        // In this order: what is told of up to there is in the box by now.
        let seen = self.hub.seen();
        (mem::take(&mut *lock(&self.mailbox.touched)), seen)
    }

    /// Returns once there may be something to take.
    pub(super) async fn changed(&self) {
        self.mailbox.changed.notified().await;
    }

    /// Returns once all was told up to there; never where that is nowhere.
    pub(super) async fn reaches(&self, revision: Option<Revision>) {
        let Some(revision) = revision else { return pending().await };
        // The sender lives as long as this.
        let _ = self.seen.clone().wait_for(|seen| *seen >= revision).await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.counts().streams.sub(1);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proto::etcdserverpb::{CompactionRequest, PutRequest, WatchCreateRequest};

    use super::{super::watcher::Watcher, *};
    use crate::{
        api_error::ApiError,
        mvcc::{Bound, Store},
    };

    const WATCH: i64 = 7;
    const BOUND: Bound = Bound { changes: 10, bytes: 1000 };

    /// A watch from `a` to `z` that was told of all that was written, then so many puts and this compaction; what is in its box.
    fn overtaken(puts: usize, compacted: Option<i64>) -> (Watcher, Store, Revision) {
        let mut store = Store::default();
        let request = WatchCreateRequest { key: b"a".into(), range_end: b"z".into(), ..Default::default() };
        let mut watcher = Watcher::new(request, store.revision()).unwrap();
        assert_eq!(watcher.advance(&store, &mut BOUND.clone()), Ok(Vec::new()));
        let next = Revision(store.revision().0 + 1);
        for _ in 0..puts {
            store.put(PutRequest { key: b"key".into(), ..PutRequest::default() }).unwrap();
        }
        if let Some(revision) = compacted {
            store.compact(&CompactionRequest { revision, physical: false }).unwrap();
            while store.forget(1000) {}
        }
        let (mut watches, mailbox) = (Index::default(), Arc::new(Mailbox::default()));
        watches.insert(watcher.range(), (0, WATCH), mailbox.clone());
        tell(&watches, next, &store.changed_since(next, 1000));
        let first = lock(&mailbox.touched)[&WATCH];
        watcher.touched(first);
        (watcher, store, first)
    }

    #[test]
    fn a_watch_that_a_compaction_overtakes_never_misses_a_change_in_silence() {
        let (mut watcher, store, first) = overtaken(3, None);
        assert_eq!((first, watcher.advance(&store, &mut BOUND.clone()).unwrap().len()), (Revision(2), 3));
        // It was told up to 1, and 2 and 3 are gone; what is left at 4 is not told first.
        let (mut watcher, store, first) = overtaken(3, Some(4));
        assert_eq!((first, watcher.advance(&store, &mut BOUND.clone())), (Revision(2), Err(ApiError::Compacted)));
        let (mut watcher, store, _) = overtaken(3, Some(2));
        assert_eq!(watcher.advance(&store, &mut BOUND.clone()).unwrap().len(), 3, "it has missed none");
    }

    /// etcd tells a watch in step within the write: no compaction comes between.
    #[test]
    fn a_compaction_ends_no_watch_whose_keys_did_not_change() {
        let mut store = Store::default();
        let next = Revision(store.revision().0 + 1);
        for _ in 0..3 {
            store.put(PutRequest { key: b"key".into(), ..PutRequest::default() }).unwrap();
        }
        store.compact(&CompactionRequest { revision: 4, physical: false }).unwrap();
        let (mut watches, mailbox) = (Index::default(), Arc::new(Mailbox::default()));
        for (id, key) in [(1, "key"), (2, "other")] {
            watches.insert(KeyRange::One(key.as_bytes()), (0, id), mailbox.clone());
        }
        let touched_by = |store: &Store| {
            tell(&watches, next, &store.changed_since(next, 1000));
            mem::take(&mut *lock(&mailbox.touched))
        };
        assert_eq!(touched_by(&store), [(1, Revision(2))].into());
        assert!(store.forget(1));
        assert_eq!(touched_by(&store), [(1, Revision(2)), (2, Revision(2))].into(), "nobody knows any more");
    }
}

//! A write in progress: any number of changes that share the next revision, and are all taken back where one fails.

use bytes::Bytes;
use proto::{LeaseId, Revision};

use super::{
    Change, KeyRange, Store,
    history::{History, Live, Position, Record},
    size,
};

/// Changes at the revision after the store's. Dropped without [`Write::end`], it leaves nothing behind.
pub(super) struct Write<'a> {
    store: &'a mut Store,
    changes: u64,
}

impl Store {
    pub(super) fn write(&mut self) -> Write<'_> {
        Write { store: self, changes: 0 }
    }
}

impl Write<'_> {
    /// The store with the changes so far.
    pub(super) fn store(&self) -> &Store {
        self.store
    }

    /// The revision that a read sees now: a write that changed nothing moves nothing.
    pub(super) fn revision(&self) -> Revision {
        if self.changes == 0 { self.store.revision } else { self.next() }
    }

    /// Writes a key. The lease must be there.
    pub(super) fn put(&mut self, key: Bytes, value: Bytes, lease: LeaseId) {
        let next = self.next();
        self.push(key, |before| {
            let (created, version) = before.map_or((next, 1), |live| (live.created, live.version + 1));
            Some(Live { created, version, value, lease })
        });
    }

    /// Deletes the keys of a range and says how many there were.
    pub(super) fn delete(&mut self, range: KeyRange<'_>) -> i64 {
        let doomed: Vec<Bytes> = self.store.alive(range, self.revision()).map(|found| found.key.clone()).collect();
        let count = doomed.len() as i64;
        for key in doomed {
            self.push(key, |_| None);
        }
        count
    }

    /// Makes the changes stand, and gives the revision they are at.
    pub(super) fn end(mut self) -> Revision {
        self.store.revision = self.revision();
        self.changes = 0;
        self.store.revision
    }

    fn next(&self) -> Revision {
        Revision(self.store.revision.0 + 1)
    }

    /// Adds what a key becomes to its history. It is looked up once: that is most of what a change costs.
    fn push(&mut self, key: Bytes, becomes: impl FnOnce(Option<&Live>) -> Option<Live>) {
        let at = Position { revision: self.next(), sub: self.changes };
        let store = &mut *self.store;
        let (key, before, after) = match store.keys.get_key_value_mut(&key[..]) {
            Some((kept, history)) => {
                let head = history.head().map(|(_, live)| live);
                let before = lease_of(head);
                let record = Record { at, live: becomes(head) };
                let after = lease_of(record.live.as_ref());
                store.records_bytes += size::of_change(&record);
                store.alive = store.alive + usize::from(record.live.is_some()) - usize::from(head.is_some());
                history.push(record);
                // The key that the map has is shared with the change, so that it is stored once.
                (kept.clone(), before, after)
            }
            None => {
                let record = Record { at, live: becomes(None) };
                let after = lease_of(record.live.as_ref());
                store.records_bytes += size::of_key(&key) + size::of_change(&record);
                store.alive += usize::from(record.live.is_some());
                let mut history = History::default();
                history.push(record);
                store.keys.insert(key.clone(), history);
                (key, LeaseId(0), after)
            }
        };
        store.leases.pass(&key, before, after);
        store.changes.push_back(Change { at, key });
        self.changes += 1;
    }

    fn take_back(&mut self) {
        let Some(Change { key, .. }) = self.store.changes.pop_back() else { return };
        let Some(history) = self.store.keys.get_mut(&key) else { return };
        let Some(record) = history.pop() else { return };
        let of_key = if history.is_empty() { size::of_key(&key) } else { 0 };
        self.store.records_bytes -= of_key + size::of_change(&record);
        self.store.alive =
            self.store.alive + usize::from(history.head().is_some()) - usize::from(record.live.is_some());
        let after = lease_of(record.live.as_ref());
        let before = lease_of(history.head().map(|(_, live)| live));
        if history.is_empty() {
            self.store.keys.remove(&key);
        }
        self.store.leases.pass(&key, after, before);
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        for _ in 0..self.changes {
            self.take_back();
        }
    }
}

fn lease_of(live: Option<&Live>) -> LeaseId {
    live.map_or(LeaseId(0), |live| live.lease)
}

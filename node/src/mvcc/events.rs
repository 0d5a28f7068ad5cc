//! What watches are told: the changes of each revision, in order.
//!
//! Source: etcd, server/storage/mvcc/watchable_store.go.

use bytes::Bytes;
use proto::{
    Revision,
    mvccpb::{Event, KeyValue, event::EventType},
};

use super::{
    Change, KeyRange, Store,
    history::{History, Record},
};
use crate::api_error::ApiError;

/// How much of history is looked at in one go; used up as it is.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Changes, whoever they are for.
    pub changes: usize,
    /// Bytes of the keys and values that were found.
    pub bytes: usize,
}

impl Bound {
    /// Whether nothing more is to be looked at.
    pub fn is_reached(self) -> bool {
        self.changes == 0 || self.bytes == 0
    }

    fn use_up(&mut self, event: Option<&Event>) {
        let size = |kv: &Option<KeyValue>| kv.as_ref().map_or(0, |kv| kv.key.len() + kv.value.len());
        self.changes = self.changes.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(event.map_or(0, |event| size(&event.kv) + size(&event.prev_kv)));
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// What happened to the keys that were asked about.
    pub events: Vec<Event>,
    /// The first revision after it.
    pub next: Revision,
}

/// What keys were changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    pub keys: Vec<(Revision, Bytes)>,
    /// The last revision that was looked at.
    pub up_to: Revision,
    pub has_more: bool,
    /// Whether it has all of them: what is compacted is there until it is [forgotten](Store::forget).
    pub is_whole: bool,
}

impl Store {
    /// The keys that were changed from `start` on, whoever they are for: `most`, and those of the same revision as the last.
    pub fn changed_since(&self, start: Revision, most: usize) -> Changed {
        let (mut keys, mut last) = (Vec::new(), start);
        for change in self.changes.focus().narrow(self.first_change(start)..) {
            if keys.len() >= most && change.at.revision != last {
                return Changed { keys, up_to: last, has_more: true, is_whole: start >= self.gone };
            }
            last = change.at.revision;
            keys.push((last, change.key.clone()));
        }
        Changed { keys, up_to: self.revision, has_more: false, is_whole: start >= self.gone }
    }

    /// As [`Store::events_since`], but no more than the bound allows; a revision is never split.
    ///
    /// # Errors
    /// As there.
    pub fn events_within(
        &self,
        start: Revision,
        range: KeyRange<'_>,
        previous: bool,
        bound: &mut Bound,
    ) -> Result<Stretch, ApiError> {
        if start < self.compacted {
            return Err(ApiError::Compacted);
        }
        let first = self.first_change(start);
        let mut stretch = Stretch { events: Vec::new(), next: start.max(Revision(self.revision.0 + 1)) };
        let mut last = start;
        for change in self.changes.focus().narrow(first..) {
            if bound.is_reached() && change.at.revision != last {
                stretch.next = change.at.revision;
                break;
            }
            last = change.at.revision;
            let event = range.contains(&change.key).then(|| self.event(change, previous)).flatten();
            bound.use_up(event.as_ref());
            stretch.events.extend(event);
        }
        Ok(stretch)
    }

    /// The changes of a range at `start` and after it, all that the store has. With `previous` each carries what was there
    /// before its revision, unless that is compacted.
    ///
    /// A watch that asks again from the revision after the last one it was told of misses nothing and hears nothing twice.
    ///
    /// # Errors
    /// [`ApiError::Compacted`]: changes at `start` may be missing; the first that are not are those at
    /// [`Store::compacted`].
    pub fn events_since<'a>(
        &'a self,
        start: Revision,
        range: KeyRange<'a>,
        previous: bool,
    ) -> Result<impl Iterator<Item = Event> + use<'a>, ApiError> {
        if start < self.compacted {
            return Err(ApiError::Compacted);
        }
        let first = self.first_change(start);
        let changes =
            self.changes.focus().narrow(first..).into_iter().filter(move |change| range.contains(&change.key));
        Ok(changes.filter_map(move |change| self.event(change, previous)))
    }

    fn event(&self, change: &Change, previous: bool) -> Option<Event> {
        let history = self.keys.get(&change.key).filter(|_| self.is_kept(change))?;
        let record = history.get(change.at)?;
        let prev_kv = if previous { self.before(change, record, history) } else { None };
        let (kind, kv) = match &record.live {
            Some(live) => (EventType::Put, live.key_value(&change.key, change.at)),
            None => (EventType::Delete, deleted(change)),
        };
        Some(Event { r#type: kind as i32, kv: Some(kv), prev_kv })
    }

    fn before(&self, change: &Change, record: &Record, history: &History) -> Option<KeyValue> {
        let created = record.live.as_ref().is_some_and(|live| live.created == change.at.revision);
        let before = Revision(change.at.revision.0 - 1);
        if created || before < self.compacted {
            return None;
        }
        history.at(before).map(|(at, live)| live.key_value(&change.key, at))
    }
}

fn deleted(change: &Change) -> KeyValue {
    KeyValue { key: change.key.to_vec(), mod_revision: change.at.revision.0, ..KeyValue::default() }
}

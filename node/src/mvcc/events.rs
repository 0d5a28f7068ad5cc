//! What watches are told: the changes of each revision, in order.
//!
//! Source: etcd, server/storage/mvcc/watchable_store.go.

use proto::{
    Revision,
    mvccpb::{Event, KeyValue, event::EventType},
};

use super::{
    Change, KeyRange, Store,
    history::{History, Record},
};
use crate::api_error::ApiError;

impl Store {
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
        let first = self.changes.partition_point(|change| change.at.revision < start);
        let changes = self.changes.range(first..).filter(move |change| range.contains(&change.key));
        Ok(changes.filter_map(move |change| self.event(change, previous)))
    }

    fn event(&self, change: &Change, previous: bool) -> Option<Event> {
        let history = self.keys.get(&change.key)?;
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

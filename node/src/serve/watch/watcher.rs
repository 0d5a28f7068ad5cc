//! One watch: which changes it is for, and how far it is.

use proto::{
    Revision,
    etcdserverpb::{WatchCreateRequest, watch_create_request::FilterType},
    mvccpb::{Event, event::EventType},
};

use crate::{
    api_error::ApiError,
    mvcc::{Bound, KeyRange, Store},
};

#[derive(Debug)]
pub(super) struct Watcher {
    key: Vec<u8>,
    range_end: Vec<u8>,
    /// The first revision it has not been told of.
    next: Revision,
    wants_previous: bool,
    filters: Vec<EventType>,
    /// Whether a long answer may be cut up.
    pub(super) may_fragment: bool,
    /// Whether it wants to hear of progress while nothing happens.
    pub(super) wants_progress: bool,
    /// Whether it heard nothing since it was last asked.
    pub(super) is_quiet: bool,
}

/// A watch that was not made, in etcd's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WatchError {
    /// It would start before all history.
    #[error(transparent)]
    Start(#[from] ApiError),
    #[error("mvcc: watcher range is empty")]
    EmptyRange,
    /// The stream has a watch of this id.
    #[error("mvcc: duplicate watch ID provided on the WatchStream")]
    DuplicateId,
}

impl Watcher {
    /// A watch from the revision that is asked for, or from the one after `newest`.
    pub(super) fn new(request: WatchCreateRequest, newest: Revision) -> Result<Self, WatchError> {
        let filters = request.filters().map(hidden).collect();
        let WatchCreateRequest { mut key, range_end, start_revision, .. } = request;
        if start_revision < 0 {
            return Err(ApiError::Compacted.into());
        }
        if key.is_empty() {
            // The smallest there is.
            key.push(0);
        }
        if !range_end.is_empty() && range_end != [0] && key >= range_end {
            return Err(WatchError::EmptyRange);
        }
        Ok(Self {
            key,
            range_end,
            next: Revision(if start_revision == 0 { newest.0 + 1 } else { start_revision }),
            wants_previous: request.prev_kv,
            filters,
            may_fragment: request.fragment,
            wants_progress: request.progress_notify,
            is_quiet: true,
        })
    }

    /// The revision up to which it has been told everything.
    pub(super) fn told(&self) -> Revision {
        Revision(self.next.0 - 1)
    }

    /// Whether there may be something to tell it.
    pub(super) fn is_behind(&self, newest: Revision) -> bool {
        self.next <= newest
    }

    /// Takes the next changes out of the store, within the bound.
    ///
    /// # Errors
    /// [`ApiError::Compacted`]: some that it was not told of are gone.
    pub(super) fn advance(&mut self, store: &Store, bound: &mut Bound) -> Result<Vec<Event>, ApiError> {
        let range = KeyRange::new(&self.key, &self.range_end);
        let stretch = store.events_within(self.next, range, self.wants_previous, bound)?;
        self.next = stretch.next;
        let mut events = stretch.events;
        if !self.filters.is_empty() {
            events.retain(|event| !self.filters.contains(&event.r#type()));
        }
        self.is_quiet &= events.is_empty();
        Ok(events)
    }
}

/// What a filter leaves out.
fn hidden(filter: FilterType) -> EventType {
    match filter {
        FilterType::Noput => EventType::Put,
        FilterType::Nodelete => EventType::Delete,
    }
}

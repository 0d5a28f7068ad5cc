//! One watch: which changes it is for, and how far it is.

use proto::{
    Revision,
    etcdserverpb::{WatchCreateRequest, watch_create_request::FilterType},
    mvccpb::{Event, event::EventType},
};

use crate::{
    api_error::ApiError,
    mvcc::{Bound, KeyRange, Store, Stretch},
};

#[derive(Debug)]
pub(super) struct Watcher {
    key: Vec<u8>,
    range_end: Vec<u8>,
    progress: Progress,
    wants_previous: bool,
    filters: Vec<EventType>,
    /// Whether a long answer may be cut up.
    pub(super) may_fragment: bool,
    /// Whether it wants to hear of progress while nothing happens.
    pub(super) wants_progress: bool,
    /// Whether it heard nothing since it was last asked.
    pub(super) is_quiet: bool,
}

/// How far a watch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// There may be something for it from this revision on, which is the first that it was not told of.
    Behind { next: Revision },
    /// It was told of all that there is. It hears of nothing before `next`, which may be to come.
    InStep { next: Revision },
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
            progress: Progress::Behind {
                next: Revision(if start_revision == 0 { newest.0 + 1 } else { start_revision }),
            },
            wants_previous: request.prev_kv,
            filters,
            may_fragment: request.fragment,
            wants_progress: request.progress_notify,
            is_quiet: true,
        })
    }

    pub(super) fn range(&self) -> KeyRange<'_> {
        KeyRange::new(&self.key, &self.range_end)
    }

    /// The revision up to which it has been told everything, where all streams were told of what is up to `seen`.
    pub(super) fn told(&self, seen: Revision) -> Revision {
        match self.progress {
            Progress::Behind { next } => Revision(next.0 - 1),
            Progress::InStep { next } => Revision(next.0 - 1).max(seen),
        }
    }

    pub(super) fn is_behind(&self) -> bool {
        matches!(self.progress, Progress::Behind { .. })
    }

    /// There may be something for it at `first`, and there is nothing before that.
    pub(super) fn touched(&mut self, first: Revision) {
        if let Progress::InStep { next } = self.progress {
            self.progress = Progress::Behind { next: next.max(first) };
        }
    }

    /// Takes the next changes out of the store, within the bound.
    ///
    /// # Errors
    /// [`ApiError::Compacted`]: some that it was not told of are gone.
    pub(super) fn advance(&mut self, store: &Store, bound: &mut Bound) -> Result<Vec<Event>, ApiError> {
        let Progress::Behind { next } = self.progress else { return Ok(Vec::new()) };
        let Stretch { mut events, next } = store.events_within(next, self.range(), self.wants_previous, bound)?;
        self.progress = match next > store.revision() {
            true => Progress::InStep { next },
            false => Progress::Behind { next },
        };
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

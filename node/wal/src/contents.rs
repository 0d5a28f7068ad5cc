//! What the log holds, as memory knows it: every entry's id and place, and the payloads of the newest ones.
//!
//! It changes the moment something is asked for; the disk follows. An entry is in the tail until it has a place on
//! disk, so that it can be read at any time.

use std::{
    collections::VecDeque,
    ops::{Bound, RangeBounds},
};

use crate::{
    entry::{Entry, EntryId, LogIndex, Term},
    error::Refusal,
    marks::Marks,
    record::{Record, check_size},
};

/// Where the record of an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    pub(crate) offset: u32,
    pub(crate) size: u32,
}

/// An entry that was found.
#[derive(Debug)]
pub(crate) enum Found {
    /// In memory.
    Tail(Entry),
    /// On disk.
    Stored(EntryId, Place),
}

/// An entry whose payload is only on disk.
#[derive(Debug)]
struct Stored {
    term: Term,
    leader: u64,
    place: Place,
}

/// The log, without the bytes that are only on disk.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    marks: Marks,
    /// The older entries.
    stored: VecDeque<Stored>,
    /// The newer entries, up to the next; each with its place once it is durable.
    tail: VecDeque<(Entry, Option<Place>)>,
    tail_bytes: usize,
    tail_limit: usize,
}

impl Contents {
    /// No entries; of a log that goes on at `next`.
    pub(crate) fn new(next: LogIndex, tail_limit: usize) -> Self {
        Self { marks: Marks { next, ..Marks::default() }, tail_limit, ..Self::default() }
    }

    pub(crate) fn marks(&self) -> &Marks {
        &self.marks
    }

    /// The index of the first entry, or of the next one when there is none.
    pub(crate) fn first(&self) -> LogIndex {
        LogIndex(self.marks.next.0 - self.len() as u64)
    }

    /// The entry at an index, where the log still knows of it.
    pub(crate) fn id_at(&self, index: LogIndex) -> Option<EntryId> {
        match index.0.checked_sub(self.first().0) {
            Some(at) if at < self.len() as u64 => Some(self.found(at as usize).id()),
            _ => self.marks.purged.filter(|purged| purged.index == index),
        }
    }

    /// The last entry; the last purged one when there is none.
    pub(crate) fn last(&self) -> Option<EntryId> {
        match self.len() {
            0 => self.marks.purged,
            length => Some(self.found(length - 1).id()),
        }
    }

    fn len(&self) -> usize {
        self.stored.len() + self.tail.len()
    }

    /// Whether these entries can follow. The first entry of a log may have any index: it can come from a snapshot.
    pub(crate) fn check_append(&self, entries: &[Entry]) -> Result<(), Refusal> {
        let fresh = self.len() == 0 && self.marks.purged.is_none();
        let mut expected = match entries.first() {
            Some(entry) if fresh => entry.id.index,
            _ => self.marks.next,
        };
        for entry in entries {
            check_size(&entry.payload)?;
            if entry.id.index != expected {
                return Err(Refusal::Hole { expected, found: entry.id.index });
            }
            expected = expected.next();
        }
        Ok(())
    }

    /// Whether the log can end before this index.
    pub(crate) fn check_truncate(&self, from: LogIndex) -> Result<(), Refusal> {
        match self.marks.committed {
            Some(id) if id.index >= from => Err(Refusal::Committed { committed: id.index, from }),
            _ => Ok(()),
        }
    }

    /// Whether the log can begin after this index.
    pub(crate) fn check_purge(&self, upto: LogIndex) -> Result<(), Refusal> {
        match self.marks.floor() <= upto && upto.next() < self.first() {
            true => Err(Refusal::Hole { expected: self.first(), found: upto.next() }),
            false => Ok(()),
        }
    }

    /// Whether everything up to this index can be committed.
    pub(crate) fn check_committed(&self, committed: LogIndex) -> Result<(), Refusal> {
        match committed < self.marks.next {
            true => Ok(()),
            false => Err(Refusal::AheadOfLog { committed, next: self.marks.next }),
        }
    }

    /// Whether a record that was read can follow. A purge always can: what it speaks of may be gone already.
    pub(crate) fn check(&self, record: &Record) -> Result<(), Refusal> {
        match record {
            Record::Entry(entry) => self.check_append(std::slice::from_ref(entry)),
            Record::Truncate { from } => self.check_truncate(*from),
            Record::Committed(id) => self.check_committed(id.index),
            Record::Purge(_) | Record::Vote(_) => Ok(()),
        }
    }

    /// What the log is after this record, which is not on disk yet.
    pub(crate) fn apply(&mut self, record: &Record) {
        match record {
            Record::Entry(entry) => {
                self.tail_bytes += entry.payload.len();
                self.tail.push_back((entry.clone(), None));
            }
            Record::Truncate { from } => self.cut_end(*from),
            Record::Purge(id) => self.cut_start(id.index.next()),
            Record::Vote(_) | Record::Committed(_) => {}
        }
        self.marks.apply(record);
    }

    /// What the log is after this record, which was read from disk.
    pub(crate) fn replay(&mut self, record: &Record, place: Place) {
        match record {
            Record::Entry(entry) => {
                // Whoever opens a log reads the end of it next.
                self.tail_bytes += entry.payload.len();
                self.tail.push_back((entry.clone(), Some(place)));
                self.marks.apply(record);
                self.trim();
            }
            other => self.apply(other),
        }
    }

    fn cut_end(&mut self, from: LogIndex) {
        let keep = from.0.saturating_sub(self.first().0).min(self.len() as u64) as usize;
        for (entry, _) in self.tail.drain(keep.saturating_sub(self.stored.len())..) {
            self.tail_bytes -= entry.payload.len();
        }
        self.stored.truncate(keep);
    }

    fn cut_start(&mut self, first: LogIndex) {
        let gone = first.0.saturating_sub(self.first().0).min(self.len() as u64) as usize;
        for (entry, _) in self.tail.drain(..gone.saturating_sub(self.stored.len())) {
            self.tail_bytes -= entry.payload.len();
        }
        self.stored.drain(..gone.min(self.stored.len()));
    }

    /// Learns where an entry is on disk, unless the entry was removed in the meantime.
    pub(crate) fn place(&mut self, entry: &Entry, place: Place) {
        let oldest = self.first().0 + self.stored.len() as u64;
        let at = entry.id.index.0.checked_sub(oldest).and_then(|at| self.tail.get_mut(at as usize));
        if let Some((held, known)) = at
            && held.id == entry.id
            && held.payload.as_ptr() == entry.payload.as_ptr()
        {
            *known = Some(place);
        }
    }

    /// Lets go of the oldest payloads in memory, so far as they are on disk.
    pub(crate) fn trim(&mut self) {
        while self.tail_bytes > self.tail_limit
            && let Some((Entry { id, payload }, Some(place))) = self.tail.front()
        {
            self.tail_bytes -= payload.len();
            self.stored.push_back(Stored { term: id.term, leader: id.leader, place: *place });
            self.tail.pop_front();
        }
    }

    /// The entries of this range that the log holds: at least one of them, and no more than so many bytes.
    pub(crate) fn find(&self, range: impl RangeBounds<u64>, max_bytes: usize) -> Vec<Found> {
        let first = self.first().0;
        let start = match range.start_bound() {
            Bound::Included(start) => start.saturating_sub(first),
            Bound::Excluded(start) => start.saturating_add(1).saturating_sub(first),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => end.saturating_add(1).saturating_sub(first),
            Bound::Excluded(end) => end.saturating_sub(first),
            Bound::Unbounded => u64::MAX,
        };
        let mut bytes = 0;
        (start..end.min(self.len() as u64))
            .map(|at| self.found(at as usize))
            .take_while(|found| {
                let fits = bytes == 0 || bytes + found.bytes() <= max_bytes;
                bytes += found.bytes();
                fits
            })
            .collect()
    }

    /// The entry that so many others are before.
    fn found(&self, before: usize) -> Found {
        match self.stored.get(before) {
            Some(Stored { term, leader, place }) => {
                let index = LogIndex(self.first().0 + before as u64);
                Found::Stored(EntryId { term: *term, leader: *leader, index }, *place)
            }
            None => Found::Tail(self.tail[before - self.stored.len()].0.clone()),
        }
    }
}

impl Found {
    fn id(&self) -> EntryId {
        match self {
            Self::Tail(entry) => entry.id,
            Self::Stored(id, _) => *id,
        }
    }

    /// About how much it takes, on disk and on the wire.
    fn bytes(&self) -> usize {
        match self {
            Self::Tail(entry) => Record::entry_size(entry.payload.len()),
            Self::Stored(_, place) => place.size as usize,
        }
    }
}

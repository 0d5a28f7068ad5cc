//! The one thread that writes: a batch to disk, then its callbacks, in the order in which they were given.
//!
//! While a batch is being synced the next one gathers; so the more is asked for at once, the fewer syncs it takes.

use std::{collections::VecDeque, io, sync::Arc, thread};

use disk::Folder;

use crate::{
    active::{Active, Spare},
    contents::Place,
    entry::{Entry, LogIndex},
    error::{At, WalError},
    marks::Marks,
    measured::Measured,
    open_log::{Batch, OpenLog},
    options::Options,
    record::Record,
    segment,
};

/// A segment that is no longer written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed {
    pub(crate) number: u64,
    /// The greatest index of an entry in it, whether or not the entry still stands.
    pub(crate) top: Option<LogIndex>,
}

/// What only the writer has.
pub(crate) struct Writer {
    pub(crate) folder: Arc<dyn Folder>,
    pub(crate) options: Options,
    pub(crate) active: Active,
    /// What the next segment is made of.
    pub(crate) spare: Option<Spare>,
    /// Oldest first.
    pub(crate) closed: VecDeque<Closed>,
    /// As of what was gathered, which can be behind what callers see.
    pub(crate) marks: Marks,
    pub(crate) measured: Arc<Measured>,
}

impl Writer {
    /// Writes until the log is closed or fails.
    pub(crate) fn run(mut self, shared: &Arc<OpenLog>) {
        let _guard = Guard(shared.clone());
        while self.turn(shared) {}
    }

    /// Writes what there is, for which a thread waits, and tells those who wait for it. Whether there may be more.
    fn turn(&mut self, shared: &OpenLog) -> bool {
        let Some(Batch { records, callbacks }) = shared.next_batch() else { return false };
        if let Err(error) = self.write(&records, shared).and_then(|()| self.remove_purged(shared)) {
            shared.fail(error, callbacks);
            return false;
        }
        for callback in callbacks {
            callback(Ok(()));
        }
        if self.spare.is_none() && self.active.is_half_full() {
            // Not needed yet: what stands in the way may be gone by then.
            self.spare = Spare::ahead_of_need(&*self.folder, &self.options);
        }
        true
    }

    fn write(&mut self, records: &[Record], shared: &OpenLog) -> Result<(), WalError> {
        let mut stored: Vec<(Entry, Place)> = Vec::new();
        for record in records {
            if !self.active.has_room(record.size()) {
                self.roll(record.size(), shared)?;
            }
            let place = self.active.gather(record);
            self.marks.apply(record);
            if let Record::Entry(entry) = record {
                stored.push((entry.clone(), place));
            }
        }
        self.active.commit(&self.measured)?;
        shared.stored(&stored);
        Ok(())
    }

    /// Goes on in a new segment, once everything before it is durable.
    fn roll(&mut self, size: u32, shared: &OpenLog) -> Result<(), WalError> {
        let end = self.active.commit(&self.measured)?;
        let after = (self.active.number + 1, end);
        let next = Active::create(&*self.folder, &self.options, after, &self.marks, size, self.spare.take())?;
        shared.add_segment(next.number, next.file.clone());
        self.closed.push_back(Closed { number: self.active.number, top: self.active.top });
        self.active = next;
        Ok(())
    }

    /// Removes the oldest segments, so far as every entry that was ever in them is purged for good.
    pub(crate) fn remove_purged(&mut self, shared: &OpenLog) -> Result<(), WalError> {
        let Some(purged) = self.marks.purged else { return Ok(()) };
        let before = self.closed.len();
        while let Some(closed) = self.closed.front().filter(|closed| closed.top <= Some(purged.index)).copied() {
            self.closed.pop_front();
            let name = segment::name(closed.number);
            self.folder.remove(&name).at("remove", &self.folder.path(&name))?;
            shared.remove_segment(closed.number);
        }
        match self.closed.len() < before {
            true => self.folder.sync_names().at("sync", &self.folder.path("")),
            false => Ok(()),
        }
    }
}

/// The writer of a log, for who has no thread for it: whenever it is woken, it takes a turn.
pub struct WriterTurns {
    pub(crate) writer: Writer,
    pub(crate) shared: Arc<OpenLog>,
}

impl WriterTurns {
    /// Makes durable all that was asked for until now, and calls its callbacks.
    pub fn take(&mut self) {
        while self.writer.turn(&self.shared) {}
    }
}

/// Fails the log when a callback panics: nobody would write any more, and everybody wait.
struct Guard(Arc<OpenLog>);

impl Drop for Guard {
    fn drop(&mut self) {
        if thread::panicking() {
            let source = io::Error::other("a callback panicked");
            self.0.fail(WalError::Io { doing: "go on with", path: "the log".into(), source }, Vec::new());
        }
    }
}

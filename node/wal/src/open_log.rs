//! What callers and the writer share: the contents, and the queue of what the disk does not have yet.

use std::{
    collections::BTreeMap,
    io, mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::{
    contents::{Contents, Place},
    entry::{Entry, EntryId},
    error::WalError,
    named_file::NamedFile,
    record::Record,
    segment,
};

/// Called once, when what it was given with is durable or cannot become so.
pub(crate) type Callback = Box<dyn FnOnce(io::Result<()>) + Send>;

/// What the disk does not have yet.
#[derive(Default)]
pub(crate) struct Queue {
    records: Vec<Record>,
    callbacks: Vec<Callback>,
    /// Goes along with the next batch, behind its entries; alone it wakes nobody.
    committed: Option<EntryId>,
}

/// What is made durable together.
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    pub(crate) callbacks: Vec<Callback>,
}

pub(crate) struct State {
    pub(crate) contents: Contents,
    /// The segments, by number.
    files: BTreeMap<u64, NamedFile>,
    queue: Queue,
    failed: Option<Arc<WalError>>,
    closing: bool,
}

pub(crate) struct OpenLog {
    state: Mutex<State>,
    wake: Wake,
}

/// How the writer hears that there is something to write.
pub(crate) enum Wake {
    /// It is a thread, and waits.
    Thread(Condvar),
    /// It is whatever this wakes.
    Other(Box<dyn Fn() + Send + Sync>),
}

impl Wake {
    fn now(&self) {
        match self {
            Self::Thread(waiting) => waiting.notify_one(),
            Self::Other(wake) => wake(),
        }
    }
}

impl OpenLog {
    pub(crate) fn new(contents: Contents, files: BTreeMap<u64, NamedFile>, wake: Wake) -> Self {
        let state = State { contents, files, queue: Queue::default(), failed: None, closing: false };
        Self { state: Mutex::new(state), wake }
    }

    /// The state of a log that has not failed.
    pub(crate) fn state(&self) -> Result<MutexGuard<'_, State>, WalError> {
        let state = self.lock();
        match &state.failed {
            Some(first) => Err(WalError::Failed(first.clone())),
            None => Ok(state),
        }
    }

    /// Changes the log at once in memory, and then on disk.
    pub(crate) fn change(&self, mut state: MutexGuard<'_, State>, records: Vec<Record>, callback: Callback) {
        for record in &records {
            state.contents.apply(record);
        }
        state.queue.records.extend(records);
        state.queue.callbacks.push(callback);
        drop(state);
        self.wake.now();
    }

    /// Something to write; a thread waits for it. `None` when there is nothing: for a thread never again, as the log is closed
    /// and everything is written.
    pub(crate) fn next_batch(&self) -> Option<Batch> {
        let mut state = self.lock();
        while state.queue.callbacks.is_empty() {
            if state.closing {
                return state.queue.committed.is_some().then(|| state.queue.take());
            }
            let Wake::Thread(waiting) = &self.wake else { return None };
            state = waiting.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(state.queue.take())
    }

    /// Knows a segment that entries will be read from.
    pub(crate) fn add_segment(&self, number: u64, file: NamedFile) {
        self.lock().files.insert(number, file);
    }

    /// Forgets a segment; who is reading it has it open.
    pub(crate) fn remove_segment(&self, number: u64) {
        self.lock().files.remove(&number);
    }

    /// These entries are durable.
    pub(crate) fn stored(&self, entries: &[(Entry, Place)]) {
        let mut state = self.lock();
        for (entry, place) in entries {
            state.contents.place(entry, *place);
        }
        state.contents.trim();
    }

    /// Takes and gives nothing more, and tells all who wait.
    pub(crate) fn fail(&self, error: WalError, waiting: Vec<Callback>) {
        let first = Arc::new(error);
        let mut state = self.lock();
        state.failed = Some(first.clone());
        let queued = state.queue.take().callbacks;
        drop(state);
        for callback in waiting.into_iter().chain(queued) {
            callback(Err(WalError::Failed(first.clone()).into()));
        }
    }

    /// Lets the writer end when it has written everything.
    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.wake.now();
    }

    /// A panic while the lock is held leaves nothing half done that anybody could see: every change ends in the queue.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes what is committed; the disk learns of it with the next batch.
    pub(crate) fn commit(&mut self, id: EntryId) {
        self.contents.apply(&Record::Committed(id));
        self.queue.committed = Some(id);
    }

    /// The segment of this number.
    pub(crate) fn file(&self, number: u64) -> Result<NamedFile, WalError> {
        let missing = || WalError::Missing { path: segment::name(number).into() };
        self.files.get(&number).cloned().ok_or_else(missing)
    }
}

impl Queue {
    fn take(&mut self) -> Batch {
        let Self { mut records, callbacks, committed } = mem::take(self);
        records.extend(committed.map(Record::Committed));
        Batch { records, callbacks }
    }
}

//! What a log should hold, written down without any thought of files; and what it may hold after a crash.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use wal::{Entry, EntryId, LogIndex, Payload, Term, Wal};

pub fn id(term: u64, index: u64) -> EntryId {
    EntryId { term: Term(term), leader: 1 + term % 3, index: LogIndex(index) }
}

pub fn entry(term: u64, index: u64, payload: impl AsRef<[u8]>) -> Entry {
    Entry { id: id(term, index), payload: Payload::copy_from_slice(payload.as_ref()) }
}

/// A log but for what is committed, which may be older on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub entries: BTreeMap<u64, Entry>,
    pub purged: Option<EntryId>,
    pub vote: Option<Payload>,
}

impl Model {
    /// What this log holds.
    pub fn read(wal: &Wal) -> Result<Self, String> {
        let entries = wal.entries(.., usize::MAX).map_err(|error| format!("{error:?}"))?;
        let state = wal.state().map_err(|error| format!("{error:?}"))?;
        let vote = wal.vote().map_err(|error| format!("{error:?}"))?;
        let entries = entries.into_iter().map(|entry| (entry.id.index.0, entry)).collect();
        let model = Self { entries, purged: state.purged, vote };
        match model.last() == state.last {
            true => Ok(model),
            false => Err(format!("the last entry is {:?}, the log says {:?}", model.last(), state.last)),
        }
    }

    pub fn last(&self) -> Option<EntryId> {
        self.entries.last_key_value().map(|(_, entry)| entry.id).or(self.purged)
    }

    pub fn next(&self) -> u64 {
        self.last().map_or(0, |last| last.index.0 + 1)
    }

    pub fn append(&mut self, entry: Entry) {
        self.entries.insert(entry.id.index.0, entry);
    }

    pub fn truncate(&mut self, from: u64) {
        self.entries.split_off(&from);
    }

    pub fn purge(&mut self, upto: EntryId) {
        if self.purged.is_none_or(|purged| purged.index < upto.index) {
            self.entries = self.entries.split_off(&(upto.index.0 + 1));
            self.purged = Some(upto);
        }
    }
}

/// Every state the log went through, one record after the other, and how far it said that it is durable.
pub struct Truth {
    /// The first is what was there at the start.
    pub states: Vec<Model>,
    /// What was committed when the same state was reached.
    committed: Vec<Option<EntryId>>,
    /// The last state that was said to be durable.
    pub durable: Arc<AtomicUsize>,
}

impl Default for Truth {
    fn default() -> Self {
        Self::from(Model::default(), None)
    }
}

impl Truth {
    pub fn from(state: Model, committed: Option<EntryId>) -> Self {
        Self { states: vec![state], committed: vec![committed], durable: Arc::default() }
    }

    pub fn now(&self) -> &Model {
        &self.states[self.states.len() - 1]
    }

    pub fn committed(&self) -> Option<EntryId> {
        self.committed[self.committed.len() - 1]
    }

    /// The log goes through another state.
    pub fn change(&mut self, change: impl FnOnce(&mut Model)) {
        let mut next = self.now().clone();
        change(&mut next);
        self.states.push(next);
        self.committed.push(self.committed());
    }

    pub fn commit(&mut self, upto: EntryId) {
        self.change(|_| {});
        *self.committed.last_mut().unwrap() = Some(upto);
    }

    /// Says which state the log is in; it must be the last durable one or one after it.
    pub fn check(&self, wal: &Wal) -> Result<usize, String> {
        let found = Model::read(wal)?;
        let durable = self.durable.load(Ordering::SeqCst);
        let state = (durable..self.states.len()).find(|at| self.states[*at] == found).ok_or_else(|| {
            let before = (0..durable).rfind(|at| self.states[*at] == found);
            format!("durable up to state {durable} of {}, found {before:?}: {found:?}", self.states.len() - 1)
        })?;
        let committed = wal.committed().map_err(|error| format!("{error:?}"))?;
        let index = |id: Option<EntryId>| id.map(|id| id.index);
        if !self.committed.contains(&committed) || index(committed) < index(self.committed[durable]) {
            return Err(format!("{committed:?} is not what was committed"));
        }
        if index(committed) > index(found.last()) {
            return Err(format!("{committed:?} is ahead of the log, which ends with {:?}", found.last()));
        }
        Ok(state)
    }
}

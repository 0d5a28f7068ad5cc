//! What the log holds: entries, and how they are named.

use std::fmt;

use bytes::Bytes;

/// A raft term (raft paper, section 5.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Term(pub u64);

/// An index of the raft log. The first entry may have any; from there on they are consecutive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LogIndex(pub u64);

impl LogIndex {
    /// The index after this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for LogIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which entry: raft never gives two entries the same one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EntryId {
    /// The term it was proposed in.
    pub term: Term,
    /// The member that proposed it.
    pub leader: u64,
    /// Its place in the log.
    pub index: LogIndex,
}

/// What an entry says, which is not the log's concern. Cloning it copies nothing.
pub type Payload = Bytes;

/// An entry of the raft log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Which entry.
    pub id: EntryId,
    /// What it says.
    pub payload: Payload,
}

//! What the log is besides its entries: small enough to be said again at the start of each segment.

use crate::{
    entry::{EntryId, LogIndex, Payload},
    record::Record,
};

/// The vote, and the positions in the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    /// The last vote that was saved.
    pub(crate) vote: Option<Payload>,
    /// The last entry that is known to be committed.
    pub(crate) committed: Option<EntryId>,
    /// The last entry that was purged.
    pub(crate) purged: Option<EntryId>,
    /// The index of the next entry.
    pub(crate) next: LogIndex,
}

impl Marks {
    /// What they are after this record.
    pub(crate) fn apply(&mut self, record: &Record) {
        match record {
            Record::Entry(entry) => self.next = entry.id.index.next(),
            Record::Truncate { from } => self.next = self.next.min((*from).max(self.floor())),
            Record::Purge(id) if self.floor() <= id.index => {
                self.purged = Some(*id);
                self.next = self.next.max(id.index.next());
            }
            Record::Purge(_) => {}
            Record::Vote(vote) => self.vote = Some(vote.clone()),
            Record::Committed(id) => self.committed = Some(*id),
        }
    }

    /// The first index that was not purged.
    pub(crate) fn floor(&self) -> LogIndex {
        self.purged.map_or(LogIndex(0), |purged| purged.index.next())
    }

    /// The records that make them, in a segment whose header says what is next.
    pub(crate) fn records(&self) -> Vec<Record> {
        let purged = self.purged.map(Record::Purge);
        let committed = self.committed.map(Record::Committed);
        let vote = self.vote.clone().map(Record::Vote);
        [purged, committed, vote].into_iter().flatten().collect()
    }
}

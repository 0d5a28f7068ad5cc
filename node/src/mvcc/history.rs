//! What one key held, and when.

use std::vec::Drain;

use bytes::Bytes;
use proto::{LeaseId, Revision, mvccpb::KeyValue};

/// Where in history one change is: its revision, and its turn among the changes of that revision, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) revision: Revision,
    pub(super) sub: u64,
}

/// What a key held from one change on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub(super) at: Position,
    /// `None`: it was deleted.
    pub(super) live: Option<Live>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Live {
    pub(super) created: Revision,
    pub(super) version: i64,
    pub(super) value: Bytes,
    /// 0 for none.
    pub(super) lease: LeaseId,
}

impl Live {
    pub(super) fn key_value(&self, key: &[u8], at: Position) -> KeyValue {
        KeyValue { value: self.value.to_vec(), ..self.without_value(key, at) }
    }

    pub(super) fn without_value(&self, key: &[u8], at: Position) -> KeyValue {
        KeyValue {
            key: key.to_vec(),
            create_revision: self.created.0,
            mod_revision: at.revision.0,
            version: self.version,
            value: Vec::new(),
            lease: self.lease.0,
        }
    }
}

/// The records of one key, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct History {
    records: Vec<Record>,
}

impl History {
    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The newest record's place and content, if the key is there now.
    pub(super) fn head(&self) -> Option<(Position, &Live)> {
        self.records.last().and_then(seen)
    }

    /// What was there at a revision, after all changes of that revision.
    pub(super) fn at(&self, revision: Revision) -> Option<(Position, &Live)> {
        match self.records.last() {
            // Nearly every read is of what is newest.
            Some(last) if last.at.revision <= revision => seen(last),
            _ => self.records[..self.until(revision)].last().and_then(seen),
        }
    }

    /// The record that a change wrote.
    pub(super) fn get(&self, at: Position) -> Option<&Record> {
        self.records.binary_search_by_key(&at, |record| record.at).ok().map(|index| &self.records[index])
    }

    pub(super) fn push(&mut self, record: Record) {
        if self.records.len() == self.records.capacity() {
            // Most keys have one; a vector would begin with room for four, and then double it each time.
            self.records.reserve_exact(1 + self.records.len() / 4);
        }
        self.records.push(record);
    }

    /// Takes the newest record back.
    pub(super) fn pop(&mut self) -> Option<Record> {
        self.records.pop()
    }

    /// What reads and watches from `compacted` on can see. A deletion at that very revision is kept, since a watch may
    /// still start there (etcd, `keyIndex.compact`).
    pub(super) fn kept(&self, compacted: Revision) -> &[Record] {
        &self.records[self.hidden(compacted)..]
    }

    /// Takes out all but what is kept.
    pub(super) fn forget(&mut self, compacted: Revision) -> Drain<'_, Record> {
        let hidden = self.hidden(compacted);
        self.records.drain(..hidden)
    }

    fn hidden(&self, compacted: Revision) -> usize {
        let until = self.until(compacted);
        let stays = |last: &Record| last.live.is_some() || last.at.revision == compacted;
        until - usize::from(self.records[..until].last().is_some_and(stays))
    }

    fn until(&self, revision: Revision) -> usize {
        self.records.partition_point(|record| record.at.revision <= revision)
    }
}

fn seen(record: &Record) -> Option<(Position, &Live)> {
    record.live.as_ref().map(|live| (record.at, live))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `2 4 6- 9`: written at 2 and 4, deleted at 6, written at 9; `6.1` is the second change of 6.
    fn history(text: &str) -> History {
        let mut history = History::default();
        for word in text.split_whitespace() {
            let (number, live) = match word.strip_suffix('-') {
                Some(number) => (number, false),
                None => (word, true),
            };
            let (revision, sub) = number.split_once('.').unwrap_or((number, "0"));
            let live = live.then(|| Live {
                created: Revision(2),
                version: 1,
                value: Bytes::from(word.to_owned()),
                lease: LeaseId(0),
            });
            let at = Position { revision: Revision(revision.parse().unwrap()), sub: sub.parse().unwrap() };
            history.push(Record { at, live });
        }
        history
    }

    #[test]
    fn a_key_is_seen_as_it_was_after_all_changes_of_a_revision() {
        for (text, revision, value) in [
            ("2 4 6- 9", 1, None),
            ("2 4 6- 9", 2, Some("2")),
            ("2 4 6- 9", 3, Some("2")),
            ("2 4 6- 9", 5, Some("4")),
            ("2 4 6- 9", 6, None),
            ("2 4 6- 9", 8, None),
            ("2 4 6- 9", 99, Some("9")),
            ("2 6- 6.1", 6, Some("6.1")),
            ("2 6 6.1-", 6, None),
            ("2 6 6.1-", 5, Some("2")),
        ] {
            let history = history(text);
            let found = history.at(Revision(revision)).map(|(_, live)| live.value.as_ref());
            assert_eq!(found, value.map(str::as_bytes), "{text} at {revision}");
        }
    }

    #[test]
    fn compaction_leaves_what_can_still_be_read_or_watched() {
        // etcd's own example: the comment above `keyIndex` in storage/mvcc/key_index.go.
        for (text, revision, left) in [
            ("2 4 6- 9", 1, "2 4 6- 9"),
            ("2 4 6- 9", 3, "2 4 6- 9"),
            ("2 4 6- 9", 4, "4 6- 9"),
            ("2 4 6- 9", 5, "4 6- 9"),
            ("2 4 6- 9", 6, "6- 9"), // a watch from 6 must still be told
            ("2 4 6- 9", 7, "9"),
            ("2 4 6-", 7, ""),
            ("2 6- 6.1", 6, "6.1"),
            ("2 6 6.1-", 6, "6.1-"),
        ] {
            let mut compacted = history(text);
            assert_eq!(compacted.kept(Revision(revision)), history(left).records(), "{text} at {revision}");
            drop(compacted.forget(Revision(revision)));
            assert_eq!(compacted, history(left), "{text} at {revision}");
        }
    }
}

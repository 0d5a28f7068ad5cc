//! A store from bytes: how it is read back.
//!
//! Whatever the bytes are, the answer is a store or an error. A part of a kind that is not known is an error too, never
//! passed over.

use std::mem;

use bytes::Bytes;
use crc32c::crc32c_append;
use prost::{DecodeError, Message, decode_length_delimiter, length_delimiter_len};
use proto::{LeaseId, Revision};
use thiserror::Error;

use super::{
    Change, Store,
    history::{History, Live, Position, Record},
    snapshot::{FORMAT, uncompressed},
};
use crate::stored::{self, part::Content};

/// Why bytes are no state.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// A newer release wrote it; nothing of it is taken.
    #[error("a stored state of format {0}, which is newer than the {FORMAT} that this release reads")]
    Newer(u32),
    #[error("a stored state that is cut off")]
    CutOff,
    #[error("a stored state with a part that is damaged")]
    Part(#[from] DecodeError),
    /// The parts do not make up a state.
    #[error("a stored state that is damaged: {0}")]
    Damaged(&'static str),
}

/// A state that is being read.
#[derive(Debug, Default)]
pub struct Restore {
    /// What is not a whole part yet.
    pending: Vec<u8>,
    checksum: u32,
    store: Store,
    /// The key whose records are being read.
    last: Option<(Bytes, History)>,
    stage: Stage,
    /// How many zeros may still follow the end.
    fill_bytes: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Stage {
    #[default]
    Head,
    Leases,
    Records,
    Ended,
}

impl Restore {
    /// Of bytes that are filled up with this many zeros at most.
    pub fn filled_up(most_bytes: usize) -> Self {
        Self { fill_bytes: most_bytes, ..Self::default() }
    }

    /// Takes in the next bytes, however they are cut.
    ///
    /// # Errors
    /// They are no state that this release knows; the rest need not be read then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let mut rest = self.complete(bytes)?;
        // Most of them are read where they are.
        while self.stage != Stage::Ended
            && let Some((part, behind)) = length(rest)?.and_then(|length| rest.split_at_checked(length))
        {
            self.part(part)?;
            rest = behind;
        }
        if self.stage == Stage::Ended {
            return self.fill(rest);
        }
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    /// Reads the part that has begun already, if it ends in these bytes; what is behind it.
    fn complete<'a>(&mut self, mut bytes: &'a [u8]) -> Result<&'a [u8], SnapshotError> {
        while !self.pending.is_empty() {
            // A byte more may tell how long it is.
            let wanted = length(&self.pending)?.unwrap_or(self.pending.len() + 1);
            let (now, later) = bytes.split_at(bytes.len().min(wanted - self.pending.len()));
            self.pending.extend_from_slice(now);
            bytes = later;
            if length(&self.pending)? == Some(self.pending.len()) {
                let mut part = mem::take(&mut self.pending);
                self.part(&part)?;
                part.clear();
                self.pending = part;
            } else if bytes.is_empty() {
                break;
            }
        }
        Ok(bytes)
    }

    /// Takes in what comes behind the end.
    fn fill(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let left = self.fill_bytes.checked_sub(bytes.len()).filter(|_| bytes.iter().all(|byte| *byte == 0));
        self.fill_bytes = left.ok_or(SnapshotError::Damaged("something behind its end"))?;
        Ok(())
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// Something is missing, or left over.
    pub fn finish(mut self) -> Result<Store, SnapshotError> {
        if self.stage != Stage::Ended || !self.pending.is_empty() {
            return Err(SnapshotError::CutOff);
        }
        self.store.keys.extend(self.last.take());
        self.list_changes()?;
        self.bind_leases()?;
        self.store.measure();
        Ok(self.store)
    }

    fn part(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        // Keys and values are copied out one by one, so that none of them holds on to a whole part.
        match stored::Part::decode_length_delimited(bytes)?.content {
            Some(Content::Head(head)) if self.stage == Stage::Head => self.head(&head)?,
            Some(Content::Leases(leases)) if self.stage == Stage::Leases => self.leases(&leases)?,
            Some(Content::Records(records)) if matches!(self.stage, Stage::Leases | Stage::Records) => {
                self.stage = Stage::Records;
                records.records.into_iter().try_for_each(|record| self.record(record))?;
            }
            Some(Content::End(end)) if matches!(self.stage, Stage::Leases | Stage::Records) => {
                self.stage = Stage::Ended;
                if end.checksum != self.checksum && !cfg!(fuzzing) {
                    return Err(SnapshotError::Damaged("its checksum is wrong"));
                }
            }
            _ => return Err(SnapshotError::Damaged("a part out of order")),
        }
        self.checksum = crc32c_append(self.checksum, bytes);
        Ok(())
    }

    fn head(&mut self, head: &stored::Head) -> Result<(), SnapshotError> {
        if head.format > FORMAT {
            return Err(SnapshotError::Newer(head.format));
        }
        let compacted = -1..=head.revision;
        if head.format == 0 || head.revision < 1 || !compacted.contains(&head.compacted) {
            return Err(SnapshotError::Damaged("a head that cannot be"));
        }
        self.stage = Stage::Leases;
        self.store.revision = Revision(head.revision);
        self.store.compacted = Revision(head.compacted);
        self.store.gone = self.store.compacted;
        Ok(())
    }

    fn leases(&mut self, leases: &stored::Leases) -> Result<(), SnapshotError> {
        for lease in &leases.leases {
            let id = LeaseId(lease.id);
            let granted = self.store.leases.grant(id, lease.granted_s);
            granted.map_err(|_| SnapshotError::Damaged("a lease that cannot be"))?;
            self.store.leases.checkpoint(id, lease.checkpointed_s);
        }
        Ok(())
    }

    fn record(&mut self, stored: stored::Record) -> Result<(), SnapshotError> {
        let at = Position { revision: Revision(stored.mod_revision), sub: stored.sub };
        if at.revision < Revision(2) || at.revision > self.store.revision || stored.version < 0 {
            return Err(SnapshotError::Damaged("a record that cannot be"));
        }
        let value = match (stored.value.is_empty(), stored.compressed_value.is_empty()) {
            (_, true) => stored.value,
            (true, false) => uncompressed(&stored.compressed_value).map_err(SnapshotError::Damaged)?,
            (false, false) => return Err(SnapshotError::Damaged("a value that is there twice")),
        };
        let live = (stored.version != 0).then_some(Live {
            created: Revision(stored.create_revision),
            version: stored.version,
            value,
            lease: LeaseId(stored.lease),
        });
        self.append(stored.key, Record { at, live })
    }

    fn append(&mut self, key: Option<Bytes>, record: Record) -> Result<(), SnapshotError> {
        let last = &mut self.last;
        match (key, last) {
            (None, None) => return Err(SnapshotError::Damaged("a record without a key")),
            (None, Some((_, history))) => {
                if history.records().last().is_some_and(|before| before.at >= record.at) {
                    return Err(SnapshotError::Damaged("records out of order"));
                }
                history.push(record);
            }
            (Some(key), last) => {
                if last.as_ref().is_some_and(|(last, _)| *last >= key) {
                    return Err(SnapshotError::Damaged("keys out of order"));
                }
                let mut history = History::default();
                history.push(record);
                self.store.keys.extend(last.replace((key, history)));
            }
        }
        Ok(())
    }

    fn list_changes(&mut self) -> Result<(), SnapshotError> {
        let Store { keys, changes, compacted, .. } = &mut self.store;
        let mut listed: Vec<Change> = Vec::new();
        for (key, history) in keys.iter() {
            let records = history.records().iter().filter(|record| record.at.revision >= *compacted);
            listed.extend(records.map(|record| Change { at: record.at, key: key.clone() }));
        }
        listed.sort_unstable_by_key(|change| change.at);
        if listed.windows(2).any(|pair| pair[0].at == pair[1].at) {
            return Err(SnapshotError::Damaged("two changes at one place"));
        }
        *changes = listed.into();
        Ok(())
    }

    fn bind_leases(&mut self) -> Result<(), SnapshotError> {
        let Store { keys, leases, .. } = &mut self.store;
        for (key, history) in keys.iter() {
            let lease = history.head().map_or(LeaseId(0), |(_, live)| live.lease);
            leases.require(lease).map_err(|_| SnapshotError::Damaged("a key of a lease that is not there"))?;
            leases.pass(key, LeaseId(0), lease);
        }
        Ok(())
    }
}

/// How many bytes the first part takes with its length, once that is there.
fn length(bytes: &[u8]) -> Result<Option<usize>, SnapshotError> {
    // A length of ten bytes is the longest there is; a shorter one ends at the first byte below 0x80.
    if bytes.len() < 10 && bytes.iter().all(|byte| *byte >= 0x80) {
        return Ok(None);
    }
    let length = decode_length_delimiter(bytes)?;
    Ok(Some(length.saturating_add(length_delimiter_len(length))))
}

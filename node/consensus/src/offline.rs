//! What can be done to a member's disk while nobody runs on it: its machine is brought to the end of what its log knows to be
//! committed, and stored there.

use std::{io, sync::mpsc};

use wal::{Wal, WalError};

use crate::{
    format::{FormatError, decode_payload},
    log_store::{MAX_READ, entry_id},
    machine::{Applier, Batch, Content},
    snapshots::SnapshotError,
};

/// Why it is not done.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The log cannot be read or written.
    #[error(transparent)]
    Log(#[from] WalError),
    /// An entry of the log is damaged.
    #[error("an entry of the log cannot be read")]
    Entry(#[from] FormatError),
    /// The log does not go on where the snapshot ends.
    #[error(
        "entry {0} is neither in the snapshot nor in the log: what is stored is older than the log, or a part of it is missing"
    )]
    Gap(u64),
    /// The machine does not take an entry.
    #[error("an entry cannot be applied")]
    Apply(#[source] io::Error),
    /// The snapshot is not written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Nobody could ever go on from there.
    #[error("no entry up to the last that is committed says who the members are")]
    NoMembers,
    /// The log is not durable.
    #[error("cannot write the log")]
    Disk(#[source] io::Error),
}

impl Applier {
    /// Applies what the log knows to be committed.
    ///
    /// # Errors
    /// [`OfflineError`]
    pub fn replay(&self, log: &Wal) -> Result<(), OfflineError> {
        let Some(committed) = log.committed()?.map(|id| id.index.0) else { return Ok(()) };
        while self.next() <= committed {
            let mut batch = Batch::default();
            for entry in log.entries(self.next()..=committed, MAX_READ)? {
                let next = batch.next(self.next());
                if entry.id.index.0 != next {
                    return Err(OfflineError::Gap(next));
                }
                batch.push((decode_payload(entry)?, None));
            }
            if batch.is_empty() {
                return Err(OfflineError::Gap(self.next()));
            }
            self.apply_batch(batch).map_err(OfflineError::Apply)?;
        }
        Ok(())
    }

    /// What the log holds behind that, which may be committed or not: by index.
    ///
    /// # Errors
    /// [`OfflineError`]
    pub fn rest(&self, log: &Wal) -> Result<Vec<(u64, Content)>, OfflineError> {
        let mut rest = Batch::default();
        loop {
            let entries = log.entries(rest.next(self.next()).., MAX_READ)?;
            if entries.is_empty() {
                return Ok(rest.entries());
            }
            for entry in entries {
                rest.push((decode_payload(entry)?, None));
            }
        }
    }

    /// Stores the machine's state as it is now, and takes all that it holds out of the log: no member is sent it again. Durable
    /// afterwards; ended half way, it is done by the next.
    ///
    /// # Errors
    /// [`OfflineError`]
    pub fn store_offline(&self, log: &Wal) -> Result<(), OfflineError> {
        let (meta, frozen) = self.freeze();
        if meta.last_membership.voter_ids().next().is_none() {
            return Err(OfflineError::NoMembers);
        }
        self.snapshots.write(&meta, frozen)?;
        let Some(last) = meta.last_log_id else { return Ok(()) };
        let (done, is_done) = mpsc::channel();
        log.purge(entry_id(&last), move |result| drop(done.send(result)))?;
        is_done.recv().unwrap_or_else(|_| Err(io::Error::other("the log was closed"))).map_err(OfflineError::Disk)
    }
}

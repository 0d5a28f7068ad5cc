//! The durable log as openraft wants it.

use std::{fmt::Debug, io, ops::RangeBounds};

use bytes::Bytes;
use openraft::{
    LogState, RaftLogReader,
    storage::{IOFlushed, RaftLogStorage},
};
use tokio::sync::oneshot;
use wal::{Wal, WalError};

use crate::{
    format::{FormatError, Wire, decode_payload, encode_payload, log_id, term_of},
    types::{Entry, LogId, Payload, Types, Vote},
};

/// What one reading for another member takes at most, in bytes.
pub(crate) const MAX_READ: usize = 4 << 20;

/// The log.
#[derive(Clone, Debug)]
pub struct LogStore {
    wal: Wal,
}

impl LogStore {
    /// Over a log that is open.
    pub fn new(wal: Wal) -> Self {
        Self { wal }
    }

    fn read(&self, range: impl RangeBounds<u64>, max: usize) -> io::Result<Vec<Entry>> {
        let entries = self.wal.entries(range, max).map_err(failed)?;
        entries.into_iter().map(|entry| decode_payload(entry).map_err(damaged)).collect()
    }

    fn vote(&self) -> io::Result<Option<Vote>> {
        let bytes = self.wal.vote().map_err(failed)?;
        bytes.map(|bytes| Vote::decode(bytes).map_err(damaged)).transpose()
    }
}

/// Tells of each command at the end of a log that it does not know to be committed, with its index. What is damaged is left to
/// whoever acts upon it.
///
/// # Errors
/// The log cannot be read.
pub fn uncommitted(wal: &Wal, mut tell: impl FnMut(u64, Bytes)) -> Result<(), WalError> {
    let mut next = wal.committed()?.map_or(0, |id| id.index.0 + 1);
    loop {
        let entries = wal.entries(next.., MAX_READ)?;
        let Some(last) = entries.last() else { return Ok(()) };
        next = last.id.index.0 + 1;
        for entry in entries.into_iter().filter_map(|entry| decode_payload(entry).ok()) {
            if let Payload::Normal(command) = entry.payload {
                tell(entry.log_id.index, command.bytes());
            }
        }
    }
}

fn failed(error: WalError) -> io::Error {
    io::Error::other(error)
}

fn damaged(error: FormatError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

pub(crate) fn entry_id(id: &LogId) -> wal::EntryId {
    wal::EntryId { term: wal::Term(term_of(id)), leader: 0, index: wal::LogIndex(id.index) }
}

fn raft_id(id: wal::EntryId) -> LogId {
    log_id(id.term.0, id.index.0)
}

/// Makes a change and waits until it is durable.
async fn durable(
    change: impl FnOnce(Box<dyn FnOnce(io::Result<()>) + Send>) -> Result<(), WalError>,
) -> io::Result<()> {
    let (done, is_done) = oneshot::channel();
    // Nobody is left to tell when the member ends.
    change(Box::new(|result| drop(done.send(result)))).map_err(failed)?;
    is_done.await.map_err(|_| io::Error::other("the log was closed"))?
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: RB,
    ) -> io::Result<Vec<Entry>> {
        self.read(range, usize::MAX)
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        self.vote()
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        self.read(start..end, MAX_READ)
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        let state = self.wal.state().map_err(failed)?;
        Ok(LogState { last_purged_log_id: state.purged.map(raft_id), last_log_id: state.last.map(raft_id) })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        durable(|done| self.wal.save_vote(vote.encode(), done)).await
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        committed.map_or(Ok(()), |id| self.wal.save_committed(entry_id(&id)).map_err(failed))
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.wal.committed().map_err(failed)?.map(raft_id))
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let entries: Vec<_> = entries.into_iter().map(|entry| encode_payload(&entry)).collect();
        self.wal.append(entries, |result| callback.io_completed(result)).map_err(failed)
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        let last = last.map(|id| wal::LogIndex(id.index));
        durable(|done| self.wal.truncate_after(last, done)).await
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        // Nobody needs what goes, and to remove its files takes a while: heartbeats do not wait for it.
        let told = |result: io::Result<()>| {
            if let Err(error) = result {
                tracing::warn!(%error, "entries that are no longer needed were not removed");
            }
        };
        self.wal.purge(entry_id(&upto), told).map_err(failed)
    }
}

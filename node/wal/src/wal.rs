//! The log as its callers have it.

use std::{
    fmt, io,
    ops::RangeBounds,
    path::Path,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::{self, JoinHandle},
};

use disk::Folder;

use crate::{
    contents::{Found, Place},
    entry::{Entry, EntryId, LogIndex, Payload},
    error::{At, WalError},
    measured::Measured,
    named_file::NamedFile,
    open_log::{OpenLog, Wake},
    options::Options,
    record::{Record, check_size, decode},
    recovery::{Recovered, recover},
    writer::{Writer, WriterTurns},
};

/// A raft log. Every clone is the same log; with the last one the log is written out and closed.
///
/// What changes it takes effect at once for everybody who reads, and is made durable in the order of the calls. Such a
/// call never waits for the disk: its callback is called by the writer once the change, and every change before
/// it, is durable. A call that gives an error has changed nothing and drops its callback. Callbacks must be short, and
/// how much is under way at once is the caller's to bound.
///
/// When the disk fails, all callbacks under way get an error, and so does every later call.
#[derive(Clone)]
pub struct Wal {
    open: Arc<Open>,
}

/// How far the log reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LogState {
    /// The last entry that was purged.
    pub purged: Option<EntryId>,
    /// The last entry; when there is none, the last that was purged.
    pub last: Option<EntryId>,
}

struct Open {
    shared: Arc<OpenLog>,
    writer: Mutex<Option<JoinHandle<()>>>,
    measured: Arc<Measured>,
}

impl Wal {
    /// Opens the log in this folder, for this process alone; makes one where there is none. A torn tail is cut; any other
    /// damage is an error.
    pub fn open(folder: &Path, options: Options) -> Result<Self, WalError> {
        Self::open_in(disk::real(folder).at("open", folder)?, options)
    }

    /// Opens the log in a folder of whatever kind.
    pub fn open_in(folder: Arc<dyn Folder>, options: Options) -> Result<Self, WalError> {
        let path = folder.path("");
        let (writer, shared) = open(folder, options, Wake::Thread(Condvar::new()))?;
        let (theirs, measured) = (shared.clone(), writer.measured.clone());
        let thread = thread::Builder::new().name("wal".into()).spawn(move || writer.run(&theirs));
        let writer = Mutex::new(Some(thread.at("start the writer of", &path)?));
        Ok(Self { open: Arc::new(Open { shared, writer, measured }) })
    }

    /// Opens the log without a thread: the caller has its writer take a turn after each `wake`, which is called with no lock
    /// held.
    pub fn open_without_thread(
        folder: Arc<dyn Folder>,
        options: Options,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<(Self, WriterTurns), WalError> {
        let (writer, shared) = open(folder, options, Wake::Other(Box::new(wake)))?;
        let (theirs, measured) = (shared.clone(), writer.measured.clone());
        let wal = Self { open: Arc::new(Open { shared: theirs, writer: Mutex::default(), measured }) };
        Ok((wal, WriterTurns { writer, shared }))
    }

    /// Appends entries; they must follow the last one without a hole.
    pub fn append(
        &self,
        entries: impl IntoIterator<Item = Entry>,
        on_durable: impl FnOnce(io::Result<()>) + Send + 'static,
    ) -> Result<(), WalError> {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let state = self.open.shared.state()?;
        state.contents.check_append(&entries)?;
        let records = entries.into_iter().map(Record::Entry).collect();
        self.open.shared.change(state, records, Box::new(on_durable));
        Ok(())
    }

    /// Removes all entries after this one, or all there are. Committed entries stay: it is an error to ask for that.
    pub fn truncate_after(
        &self,
        last: Option<LogIndex>,
        on_durable: impl FnOnce(io::Result<()>) + Send + 'static,
    ) -> Result<(), WalError> {
        let from = last.map_or(LogIndex(0), LogIndex::next);
        let state = self.open.shared.state()?;
        state.contents.check_truncate(from)?;
        self.open.shared.change(state, vec![Record::Truncate { from }], Box::new(on_durable));
        Ok(())
    }

    /// Removes all entries up to this one, which may be ahead of the log: then the log goes on behind it. Less than was
    /// purged before changes nothing.
    pub fn purge(
        &self,
        upto: EntryId,
        on_durable: impl FnOnce(io::Result<()>) + Send + 'static,
    ) -> Result<(), WalError> {
        let state = self.open.shared.state()?;
        state.contents.check_purge(upto.index)?;
        self.open.shared.change(state, vec![Record::Purge(upto)], Box::new(on_durable));
        Ok(())
    }

    /// Saves the vote. Raft must not act upon it before it is durable (raft paper, figure 2).
    pub fn save_vote(
        &self,
        vote: impl AsRef<[u8]>,
        on_durable: impl FnOnce(io::Result<()>) + Send + 'static,
    ) -> Result<(), WalError> {
        let vote = Payload::copy_from_slice(vote.as_ref());
        check_size(&vote)?;
        let state = self.open.shared.state()?;
        self.open.shared.change(state, vec![Record::Vote(vote)], Box::new(on_durable));
        Ok(())
    }

    /// Notes that everything up to this entry of the log is committed; less than was noted before changes nothing.
    ///
    /// It becomes durable with the next change or when the log is closed, and never before the entries it speaks of.
    pub fn save_committed(&self, upto: EntryId) -> Result<(), WalError> {
        let mut state = self.open.shared.state()?;
        state.contents.check_committed(upto.index)?;
        if state.contents.marks().committed.is_none_or(|known| known.index < upto.index) {
            state.commit(upto);
        }
        Ok(())
    }

    /// What it has measured since it was opened.
    pub fn measured(&self) -> &Arc<Measured> {
        &self.open.measured
    }

    /// The last vote that was saved.
    pub fn vote(&self) -> Result<Option<Payload>, WalError> {
        Ok(self.open.shared.state()?.contents.marks().vote.clone())
    }

    /// The last entry that was noted as committed.
    pub fn committed(&self) -> Result<Option<EntryId>, WalError> {
        Ok(self.open.shared.state()?.contents.marks().committed)
    }

    /// Which entry is committed at an index, where that is known, and the log still has it.
    pub fn committed_at(&self, index: LogIndex) -> Result<Option<EntryId>, WalError> {
        let state = self.open.shared.state()?;
        let is_committed = state.contents.marks().committed.is_some_and(|committed| index <= committed.index);
        Ok(is_committed.then(|| state.contents.id_at(index)).flatten())
    }

    /// How far the log reaches.
    pub fn state(&self) -> Result<LogState, WalError> {
        let state = self.open.shared.state()?;
        Ok(LogState { purged: state.contents.marks().purged, last: state.contents.last() })
    }

    /// The entries of this range that the log holds, as of one moment. No more than `max_bytes` are read, but always one
    /// entry if there is one.
    pub fn entries(&self, range: impl RangeBounds<u64>, max_bytes: usize) -> Result<Vec<Entry>, WalError> {
        read(self.open.find(range, max_bytes)?)
    }
}

/// Entries that lie one behind the other in a file are read together, up to so many bytes.
const RUN_BYTES: u32 = 1 << 20;

fn read(readable: Vec<Readable>) -> Result<Vec<Entry>, WalError> {
    let mut entries = Vec::with_capacity(readable.len());
    let mut readable = readable.into_iter().peekable();
    while let Some(next) = readable.next() {
        let (id, place, file) = match next {
            Readable::Here(entry) => {
                entries.push(entry);
                continue;
            }
            Readable::Stored(id, place, file) => (id, place, file),
        };
        let (mut run, mut size) = (vec![(id, place)], place.size);
        let follows = |next: &Readable, size: u32| match next {
            Readable::Stored(_, next, _) => {
                (next.segment, next.offset) == (place.segment, place.offset + size) && next.size <= RUN_BYTES - size
            }
            Readable::Here(_) => false,
        };
        while size < RUN_BYTES
            && let Some(Readable::Stored(id, place, _)) = readable.next_if(|next| follows(next, size))
        {
            run.push((id, place));
            size += place.size;
        }
        let bytes = file.read(place.offset.into(), size as usize)?;
        for (id, at) in run {
            let from = (at.offset - place.offset) as usize;
            // In memory of its own: who keeps one entry would keep all of them.
            let own = Payload::copy_from_slice(&bytes[from..from + at.size as usize]);
            entries.push(decoded(&own, id, at, &file)?);
        }
    }
    Ok(entries)
}

fn decoded(bytes: &Payload, id: EntryId, place: Place, file: &NamedFile) -> Result<Entry, WalError> {
    match decode(bytes, 0, place.segment, place.offset).map(|decoded| decoded.record) {
        Ok(Record::Entry(entry)) if entry.id == id => Ok(entry),
        Ok(_) => Err(file.damaged(place.offset.into(), format!("entry {}", id.index))),
        Err(expected) => Err(file.damaged(place.offset.into(), expected)),
    }
}

fn open(folder: Arc<dyn Folder>, options: Options, wake: Wake) -> Result<(Writer, Arc<OpenLog>), WalError> {
    let path = folder.path("");
    folder.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => WalError::Locked { path: path.clone() },
        _ => WalError::Io { doing: "lock", path: path.clone(), source: error },
    })?;
    let Recovered { contents, files, mut writer } = recover(folder, options)?;
    let shared = Arc::new(OpenLog::new(contents, files, wake));
    writer.remove_purged(&shared)?;
    Ok((writer, shared))
}

impl fmt::Debug for Wal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wal").field("state", &self.state()).finish_non_exhaustive()
    }
}

/// An entry that is in memory, or whose file is open: no change of the log takes it away.
enum Readable {
    Here(Entry),
    Stored(EntryId, Place, NamedFile),
}

impl Open {
    fn find(&self, range: impl RangeBounds<u64>, max_bytes: usize) -> Result<Vec<Readable>, WalError> {
        let state = self.shared.state()?;
        let open = |found| match found {
            Found::Tail(entry) => Ok(Readable::Here(entry)),
            Found::Stored(id, place) => Ok(Readable::Stored(id, place, state.file(place.segment)?)),
        };
        state.contents.find(range, max_bytes).into_iter().map(open).collect()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.close();
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // The last clone may have lived in a callback: then this is the writer's own thread.
        if let Some(writer) = writer.filter(|writer| writer.thread().id() != thread::current().id()) {
            let _ = writer.join();
        }
    }
}

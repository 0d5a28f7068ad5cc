//! Stored snapshots: a folder of files, of which the newest counts. A file has its name only once it is whole and durable.

use std::{
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use crc32c::crc32c;
use disk::{File, Folder, Reader, Writer};
use prost::Message;

use crate::{
    format::{FormatError, Wire, message},
    machine::{Frozen, Machine, Restored, Stop},
    read_ahead::ReadAhead,
    read_along::ReadAlong,
    threads::{Resting, is_alone},
    types::{LogId, SnapshotMeta, StoredMembership},
};

/// The format that is written, and the newest that is read.
const FORMAT: u32 = 1;
/// No head is longer: a group has a handful of members.
const LONGEST_HEAD: usize = 1 << 20;
/// What of a state is written in one go, at least.
const PIECE: usize = 32 << 10;
/// So much of a snapshot that comes in is written before it is made durable: whoever is sent one has no log meanwhile that would wait.
const INCOMING_UNSYNCED_BYTES: u64 = 8 << 20;
const SUFFIX: &str = ".snap";
/// Of what is being written.
const UNFINISHED: &str = ".tmp";

/// Why a snapshot cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// A verb: `read`, `write`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A newer release wrote it; nothing of it is taken.
    #[error("{} has format {found}, written by a newer release; this one knows {FORMAT}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Its bytes are not what was written.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The state machine does not take it.
    #[error("{} holds a state that cannot be used", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Stop,
    },
}

trait At<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, SnapshotError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, SnapshotError> {
        self.map_err(|source| SnapshotError::Io { doing, path: path.into(), source })
    }
}

/// The folder. Every clone is the same one.
#[derive(Clone)]
pub struct Snapshots {
    folder: Arc<dyn Folder>,
    /// Names what is being written.
    next: Arc<AtomicU64>,
    doubted: Doubted,
}

/// The name of the snapshot that another member has found damaged.
type Doubted = Arc<Mutex<Option<String>>>;

/// A snapshot's file; one without its final name goes with this value.
pub struct SnapshotFile {
    folder: Arc<dyn Folder>,
    name: String,
    is_temporary: bool,
    doubted: Doubted,
    /// Its state, where it was read before it is put to use.
    pub(crate) restored: Option<Restored>,
    /// It is being read since it began to come in.
    reading: Option<ReadAlong<Whole>>,
}

/// What a snapshot is of, and its state, of which every byte was read.
type Whole = Result<(SnapshotMeta, Restored), SnapshotError>;

/// Where a snapshot goes that comes in.
pub struct Incoming {
    file: SnapshotFile,
    writer: Writer,
}

impl Incoming {
    /// Has it read while it comes in.
    pub(crate) fn read_by(mut self, machine: &Arc<dyn Machine>) -> Self {
        let (machine, path) = (machine.clone(), self.file.path());
        self.file.reading = ReadAlong::begin(move |pieces| whole(&path, pieces, machine));
        self
    }

    /// Adds what comes next.
    ///
    /// # Errors
    /// The system refuses.
    pub fn push(&mut self, piece: Bytes) -> Result<(), SnapshotError> {
        let written = self.writer.write_all(&piece).at("write", &self.file.path());
        // A part of the piece may be there: then the file alone tells what is.
        let reading = self.file.reading.take().filter(|_| written.is_ok());
        self.file.reading = reading.inspect(|reading| reading.push(piece));
        written
    }

    /// How many bytes came in.
    pub fn length(&self) -> u64 {
        self.writer.length()
    }

    /// The file, when all of it is there.
    pub fn whole(self) -> SnapshotFile {
        self.file
    }
}

impl Snapshots {
    /// Over this folder, which belongs to them; clears what was left half written.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(folder: Arc<dyn Folder>) -> Result<Self, SnapshotError> {
        let path = folder.path("");
        for name in folder.names().at("read", &path)?.iter().filter(|name| name.ends_with(UNFINISHED)) {
            folder.remove(name).at("remove", &folder.path(name))?;
        }
        Ok(Self { folder, next: Arc::default(), doubted: Arc::default() })
    }

    /// Whether there is one.
    ///
    /// # Errors
    /// The system refuses.
    pub fn has_any(&self) -> Result<bool, SnapshotError> {
        Ok(!self.stored()?.is_empty())
    }

    /// The newest snapshot.
    pub(crate) fn newest(&self) -> Result<Option<SnapshotFile>, SnapshotError> {
        Ok(self.stored()?.pop().map(|name| self.file(name)))
    }

    fn file(&self, name: String) -> SnapshotFile {
        let (folder, doubted) = (self.folder.clone(), self.doubted.clone());
        SnapshotFile { folder, name, is_temporary: false, doubted, restored: None, reading: None }
    }

    /// The names of all of them, oldest first: they sort as positions do.
    fn stored(&self) -> Result<Vec<String>, SnapshotError> {
        let mut names = self.folder.names().at("read", &self.folder.path(""))?;
        names.retain(|name| name.ends_with(SUFFIX));
        names.sort();
        Ok(names)
    }

    /// A file for a snapshot that comes in.
    ///
    /// # Errors
    /// The system refuses.
    pub fn incoming(&self) -> Result<Incoming, SnapshotError> {
        self.begin(|file| Writer::syncing_each(INCOMING_UNSYNCED_BYTES, file))
    }

    fn begin(&self, writer: impl FnOnce(Arc<dyn File>) -> Writer) -> Result<Incoming, SnapshotError> {
        let name = format!("{}{UNFINISHED}", self.next.fetch_add(1, Ordering::Relaxed));
        let file = self.folder.create(&name).at("make", &self.folder.path(&name))?;
        let mut kept = self.file(name);
        kept.is_temporary = true;
        Ok(Incoming { file: kept, writer: writer(file) })
    }

    /// A copy of one that lies elsewhere.
    fn copy(&self, file: &SnapshotFile) -> Result<SnapshotFile, SnapshotError> {
        let Incoming { file: copy, mut writer } = self.begin(Writer::new)?;
        io::copy(&mut file.opened()?, &mut writer).at("write", &copy.path())?;
        Ok(copy)
    }

    /// Writes a state and makes it the newest.
    pub(crate) fn write(&self, meta: &SnapshotMeta, frozen: Frozen) -> Result<SnapshotFile, SnapshotError> {
        let Incoming { file, writer } = self.begin(Writer::new)?;
        let mut writer = BufWriter::with_capacity(PIECE, Resting::new(writer));
        let written = writer.write_all(&head(meta)).and_then(|()| frozen(&mut writer)).and_then(|()| writer.flush());
        written.at("write", &file.path())?;
        drop(writer);
        let file = self.keep(meta, file)?;
        // It may have the name of one that was damaged.
        file.doubt(false);
        Ok(file)
    }

    /// Gives a whole file its name, and removes those that it takes the place of.
    pub(crate) fn keep(&self, meta: &SnapshotMeta, file: SnapshotFile) -> Result<SnapshotFile, SnapshotError> {
        let name = name(meta);
        let file = if file.folder.path("") == self.folder.path("") { file } else { self.copy(&file)? };
        if file.name != name {
            let path = file.path();
            self.folder.open(&file.name).and_then(|file| file.sync()).at("sync", &path)?;
            self.folder.rename(&file.name, &name).at("rename", &path)?;
            self.folder.sync_names().at("sync", &self.folder.path(""))?;
        }
        for old in self.stored()?.into_iter().filter(|old| *old < name) {
            // One that another member is being sent stays readable to it.
            self.folder.remove(&old).at("remove", &self.folder.path(&old))?;
        }
        Ok(self.file(name))
    }
}

impl std::fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshots").field("folder", &self.folder.path("")).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SnapshotFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotFile").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// By term and index, in digits that sort.
fn name(meta: &SnapshotMeta) -> String {
    let (term, index) = meta.last_log_id.map_or((0, 0), |id| (id.leader_id.term, id.index));
    format!("{index:016x}-{term:016x}{SUFFIX}")
}

fn head(meta: &SnapshotMeta) -> Vec<u8> {
    let mut head = message::SnapshotHead {
        format: FORMAT,
        last: meta.last_log_id.as_ref().map(Wire::message),
        membership: Some(meta.last_membership.message()),
        checksum: 0,
    };
    head.checksum = checksum(&head);
    head.encode_length_delimited_to_vec()
}

fn checksum(head: &message::SnapshotHead) -> u32 {
    crc32c(&message::SnapshotHead { checksum: 0, ..head.clone() }.encode_to_vec())
}

impl SnapshotFile {
    fn path(&self) -> PathBuf {
        self.folder.path(&self.name)
    }

    /// Opens it, for sending it as it is.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(&self) -> io::Result<Reader> {
        Reader::new(self.folder.open(&self.name)?)
    }

    /// How many there are of it.
    pub(crate) fn bytes(&self) -> Result<u64, SnapshotError> {
        Ok(self.opened()?.length())
    }

    /// What it is of.
    ///
    /// # Errors
    /// Its head is damaged or of a newer release.
    pub(crate) fn meta(&self) -> Result<SnapshotMeta, SnapshotError> {
        head_of(&self.path(), &mut BufReader::new(self.opened()?))
    }

    /// What it is of, and its state: what was read while it came in, or all of it.
    pub(crate) fn read_in(&mut self, machine: &Arc<dyn Machine>) -> Result<(SnapshotMeta, Restored), SnapshotError> {
        self.reading.take().and_then(ReadAlong::end).unwrap_or_else(|| self.read(machine))
    }

    /// What it is of, and its state, of which every byte was read.
    pub(crate) fn read(&self, machine: &Arc<dyn Machine>) -> Result<(SnapshotMeta, Restored), SnapshotError> {
        let file = self.opened()?;
        let reader: &mut dyn BufRead = match is_alone() {
            true => &mut BufReader::new(file),
            false => &mut ReadAhead::of(file),
        };
        whole(&self.path(), reader, machine.clone())
    }

    pub(crate) fn unfit(&self, source: Stop) -> SnapshotError {
        SnapshotError::State { path: self.path(), source }
    }

    /// Whether another member has found it damaged since it was last read here.
    pub(crate) fn is_doubted(&self) -> bool {
        self.lock_doubted().as_ref() == Some(&self.name)
    }

    /// Notes whether another member has found it damaged.
    pub(crate) fn doubt(&self, is_doubted: bool) {
        let mut doubted = self.lock_doubted();
        match is_doubted {
            true => *doubted = Some(self.name.clone()),
            false => drop(doubted.take_if(|name| *name == self.name)),
        }
    }

    fn lock_doubted(&self) -> MutexGuard<'_, Option<String>> {
        self.doubted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) -> Result<Reader, SnapshotError> {
        self.open().at("read", &self.path())
    }
}

/// What a snapshot is of, and its state, of which every byte is read.
fn whole(path: &Path, mut reader: &mut dyn BufRead, machine: Arc<dyn Machine>) -> Whole {
    let meta = head_of(path, &mut reader)?;
    let unfit = |source| SnapshotError::State { path: path.into(), source };
    Ok((meta, machine.read_state(reader).map_err(unfit)?))
}

fn head_of(path: &Path, mut reader: impl Read) -> Result<SnapshotMeta, SnapshotError> {
    let damaged = |what: String| SnapshotError::Damaged { path: path.into(), what };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            damaged("it is cut off, or no snapshot: bring the data directory back as it was".into())
        }
        _ => SnapshotError::Io { doing: "read", path: path.into(), source: error },
    };
    let length = varint(&mut reader).map_err(failed)?;
    if length > LONGEST_HEAD as u64 {
        return Err(damaged(format!("its head says that it is {length} bytes long")));
    }
    let mut bytes = vec![0; length as usize];
    reader.read_exact(&mut bytes).map_err(failed)?;
    let head = message::SnapshotHead::decode(&*bytes).map_err(|error| damaged(error.to_string()))?;
    if head.format > FORMAT {
        return Err(SnapshotError::Newer { path: path.into(), found: head.format });
    }
    if head.checksum != checksum(&head) && !cfg!(fuzzing) {
        return Err(damaged("its head does not match its checksum".into()));
    }
    meta(head).map_err(|error| damaged(error.to_string()))
}

fn meta(head: message::SnapshotHead) -> Result<SnapshotMeta, FormatError> {
    Ok(SnapshotMeta {
        last_log_id: head.last.map(LogId::read).transpose()?,
        last_membership: head.membership.map(StoredMembership::read).transpose()?.unwrap_or_default(),
    })
}

fn varint(reader: &mut impl Read) -> io::Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        reader.read_exact(&mut byte)?;
        value |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "a length that does not end"))
}

impl Drop for SnapshotFile {
    fn drop(&mut self) {
        if self.is_temporary {
            // What stays is cleared when the folder is opened again.
            let _ = self.folder.remove(&self.name);
        }
    }
}

//! Stored snapshots: a folder of files, of which the newest counts. A file has its name only once it is whole and durable.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crc32c::crc32c;
use prost::Message;

use crate::{
    format::{FormatError, Wire, message},
    machine::{Frozen, Stop},
    read_ahead::ReadAhead,
    types::{LogId, SnapshotMeta, StoredMembership},
};

/// The format that is written, and the newest that is read.
const FORMAT: u32 = 1;
/// No head is longer: a group has a handful of members.
const LONGEST_HEAD: usize = 1 << 20;
const SUFFIX: &str = ".snap";

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
#[derive(Clone, Debug)]
pub struct Snapshots {
    folder: Arc<PathBuf>,
    /// Names what is being written.
    next: Arc<AtomicU64>,
}

/// A snapshot's file; one without its final name goes with this value.
#[derive(Debug)]
pub struct SnapshotFile {
    path: PathBuf,
    is_temporary: bool,
}

impl Snapshots {
    /// Opens the folder, makes it where there is none, and clears what was left half written.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(folder: &Path) -> Result<Self, SnapshotError> {
        fs::create_dir_all(folder).at("make", folder)?;
        for entry in fs::read_dir(folder).at("read", folder)? {
            let path = entry.at("read", folder)?.path();
            if path.extension().is_some_and(|extension| extension == "tmp") {
                fs::remove_file(&path).at("remove", &path)?;
            }
        }
        Ok(Self { folder: Arc::new(folder.into()), next: Arc::default() })
    }

    /// The newest snapshot.
    pub(crate) fn newest(&self) -> Result<Option<SnapshotFile>, SnapshotError> {
        let path = self.stored()?.pop();
        Ok(path.map(|path| SnapshotFile { path, is_temporary: false }))
    }

    /// All of them, oldest first: names sort as positions do.
    fn stored(&self) -> Result<Vec<PathBuf>, SnapshotError> {
        let entries = fs::read_dir(&*self.folder).at("read", &self.folder)?;
        let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut paths = paths.at("read", &self.folder)?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == &SUFFIX[1..]));
        paths.sort();
        Ok(paths)
    }

    /// A file for a snapshot that comes in.
    ///
    /// # Errors
    /// The system refuses.
    pub fn incoming(&self) -> Result<(SnapshotFile, File), SnapshotError> {
        let path = self.folder.join(format!("{}.tmp", self.next.fetch_add(1, Ordering::Relaxed)));
        let file = OpenOptions::new().write(true).create_new(true).open(&path).at("make", &path)?;
        Ok((SnapshotFile { path, is_temporary: true }, file))
    }

    /// Writes a state and makes it the newest.
    pub(crate) fn write(&self, meta: &SnapshotMeta, frozen: Frozen) -> Result<SnapshotFile, SnapshotError> {
        let (temporary, file) = self.incoming()?;
        let mut writer = BufWriter::with_capacity(1 << 20, &file);
        let written = writer.write_all(&head(meta)).and_then(|()| frozen(&mut writer)).and_then(|()| writer.flush());
        written.at("write", &temporary.path)?;
        drop(writer);
        self.keep(meta, temporary)
    }

    /// Gives a whole file its name, and removes those that it takes the place of.
    pub(crate) fn keep(&self, meta: &SnapshotMeta, file: SnapshotFile) -> Result<SnapshotFile, SnapshotError> {
        let path = self.folder.join(name(meta));
        if file.path != path {
            File::open(&file.path).and_then(|file| file.sync_all()).at("sync", &file.path)?;
            fs::rename(&file.path, &path).at("rename", &file.path)?;
            File::open(&*self.folder).and_then(|folder| folder.sync_all()).at("sync", &self.folder)?;
        }
        for old in self.stored()?.into_iter().filter(|old| *old < path) {
            // One that another member is being sent stays readable to it.
            fs::remove_file(&old).at("remove", &old)?;
        }
        Ok(SnapshotFile { path, is_temporary: false })
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
    /// Opens it, for sending it as it is.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(&self) -> io::Result<File> {
        File::open(&self.path)
    }

    /// What it is of.
    ///
    /// # Errors
    /// Its head is damaged or of a newer release.
    pub(crate) fn meta(&self) -> Result<SnapshotMeta, SnapshotError> {
        self.head(&mut BufReader::new(self.opened()?))
    }

    /// Hands its state to whoever takes it.
    pub(crate) fn read(
        &self,
        take: impl FnOnce(&mut dyn BufRead) -> Result<(), Stop>,
    ) -> Result<SnapshotMeta, SnapshotError> {
        let mut reader = ReadAhead::of(self.opened()?);
        let meta = self.head(&mut reader)?;
        take(&mut reader).map_err(|source| SnapshotError::State { path: self.path.clone(), source })?;
        Ok(meta)
    }

    fn opened(&self) -> Result<File, SnapshotError> {
        File::open(&self.path).at("read", &self.path)
    }

    fn head(&self, reader: &mut impl Read) -> Result<SnapshotMeta, SnapshotError> {
        let damaged = |what: String| SnapshotError::Damaged { path: self.path.clone(), what };
        let length = varint(reader).at("read", &self.path)?;
        if length > LONGEST_HEAD as u64 {
            return Err(damaged(format!("its head says that it is {length} bytes long")));
        }
        let mut bytes = vec![0; length as usize];
        reader.read_exact(&mut bytes).at("read", &self.path)?;
        let head = message::SnapshotHead::decode(&*bytes).map_err(|error| damaged(error.to_string()))?;
        if head.format > FORMAT {
            return Err(SnapshotError::Newer { path: self.path.clone(), found: head.format });
        }
        if head.checksum != checksum(&head) {
            return Err(damaged("its head does not match its checksum".into()));
        }
        meta(head).map_err(|error| damaged(error.to_string()))
    }
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
            let _ = fs::remove_file(&self.path);
        }
    }
}

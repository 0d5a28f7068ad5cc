//! Putting an artifact's files into a new folder: out of a `.tar.gz` (`archive.rs`), from a folder, or one executable.
//!
//! The artifact is opened once, and its checksum is that of the very bytes that were put there. Every file and folder is
//! fsynced.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::digest::{self, DigestError, FolderList, Hashing, MAX_ENTRIES, Sha256};
use crate::host::files::durable::{self, At, FileError};

/// The largest artifact, unpacked, in bytes.
pub const MAX_BYTES: u64 = 4 << 30;

/// Why an artifact was not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The source holds something else than files and folders.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// It is no archive, or one that is cut or damaged.
    #[error("{} is no whole .tar.gz archive", path.display())]
    Archive { path: PathBuf, source: io::Error },
    #[error("{}: entry `{entry}` {why}", path.display())]
    Entry { path: PathBuf, entry: String, why: &'static str },
    #[error("{} unpacks to more than {MAX_BYTES} bytes or {MAX_ENTRIES} entries", path.display())]
    TooLarge { path: PathBuf },
}

/// What was put into a folder.
#[derive(Debug)]
pub struct Unpacked {
    /// The checksum of the artifact, as it was read for this.
    pub sha256: Sha256,
    /// The checksums of the files with execute permission, by their names in the folder.
    pub executables: BTreeMap<String, Sha256>,
}

/// Copies a folder with all that is in it into an empty one.
pub fn folder(path: &Path, into: &Path) -> Result<Unpacked, UnpackError> {
    let too_large = || UnpackError::TooLarge { path: path.into() };
    let (mut list, mut left, mut executables) = (FolderList::default(), MAX_BYTES, BTreeMap::new());
    for (name, source) in digest::files(path)? {
        let content = digest::open_file(&source, false)?;
        let metadata = content.metadata().at("look at", &source)?;
        let executable = metadata.permissions().mode() & 0o111 != 0;
        let put = put(&mut content.take(left.saturating_add(1)), &into.join(&name), executable);
        let put = put.map_err(|error| error.of(&source))?;
        left = left.checked_sub(put.bytes).ok_or_else(too_large)?;
        list.add(&name, put.sha256);
        if executable {
            executables.insert(key(&name), put.sha256);
        }
    }
    sync_folders(into)?;
    Ok(Unpacked { sha256: list.sha256(), executables })
}

/// Copies one executable into an empty folder.
pub fn executable(file: File, path: &Path, into: &Path, name: &str) -> Result<Unpacked, UnpackError> {
    let put = put(&mut file.take(MAX_BYTES + 1), &into.join(name), true).map_err(|error| error.of(path))?;
    if put.bytes > MAX_BYTES {
        return Err(UnpackError::TooLarge { path: path.into() });
    }
    sync_folders(into)?;
    Ok(Unpacked { sha256: put.sha256, executables: [(name.to_owned(), put.sha256)].into() })
}

/// A file's name in a release.
pub(crate) fn key(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

/// As much is written at once, in bytes: a member that shares the disk waits for it with its next write.
const PIECE: usize = 1 << 20;

pub(crate) struct Put {
    pub(crate) sha256: Sha256,
    bytes: u64,
}

/// Which side of a copy failed.
pub(crate) enum PutError {
    Read(io::Error),
    Write(FileError),
}

impl From<FileError> for PutError {
    fn from(error: FileError) -> Self {
        Self::Write(error)
    }
}

impl PutError {
    /// With the file that was read.
    fn of(self, source: &Path) -> UnpackError {
        UnpackError::File(match self {
            Self::Read(error) => FileError { doing: "read", path: source.into(), source: error },
            Self::Write(error) => error,
        })
    }
}

/// Writes a new file, fsynced. Of its mode only the right to be executed is taken over: no set-id bit, and nobody
/// but the owner, who is this agent's user, may change it.
pub(crate) fn put(content: &mut impl Read, path: &Path, executable: bool) -> Result<Put, PutError> {
    if let Some(parent) = path.parent() {
        durable::create_folder(parent, 0o755)?;
    }
    let mut content = Hashing::new(content);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).at("create", path)?;
    let (mut chunk, mut unsynced, mut bytes) = (vec![0; 64 * 1024], 0, 0);
    loop {
        let count = content.read(&mut chunk).map_err(PutError::Read)?;
        if count == 0 {
            break;
        }
        file.write_all(&chunk[..count]).at("write", path)?;
        bytes += count as u64;
        unsynced += count;
        if unsynced >= PIECE {
            file.sync_data().at("fsync", path)?;
            unsynced = 0;
        }
    }
    let mode = if executable { 0o755 } else { 0o644 };
    file.set_permissions(Permissions::from_mode(mode)).at("set the mode of", path)?;
    file.sync_all().at("fsync", path)?;
    Ok(Put { sha256: content.sha256(), bytes })
}

pub(crate) fn sync_folders(folder: &Path) -> Result<(), UnpackError> {
    for entry in fs::read_dir(folder).at("read", folder)? {
        let path = entry.at("read", folder)?.path();
        if path.is_dir() {
            sync_folders(&path)?;
        }
    }
    Ok(durable::sync_folder(folder)?)
}

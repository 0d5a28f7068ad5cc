//! Every access to a file: what the log needs of a disk, and the real one.
//!
//! A trait, so that tests can take the power away at any moment: a write is durable when its file was synced after
//! it, a name when the folder was.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{FlockOperation, flock};

use crate::error::{At, WalError};

/// A folder that belongs to one log.
pub trait Disk: Send + Sync {
    /// Where the file of this name is, for messages.
    fn path(&self, name: &str) -> PathBuf;
    /// The names of all files, in any order.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Makes an empty file, in the place of whatever has this name.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Gives a file another name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file; who has it open can go on reading it.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes all names durable.
    fn sync_names(&self) -> io::Result<()>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Its size in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Fills the buffer from this offset on, or fails.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all bytes from this offset on; the file grows as needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes all writes durable.
    fn sync(&self) -> io::Result<()>;
}

/// A folder of the file system, locked for as long as this value lives.
#[derive(Debug)]
pub struct RealDisk {
    path: PathBuf,
    /// Carries the lock, and syncs the names.
    folder: File,
}

impl RealDisk {
    /// Takes the folder for this process alone; makes it when it is not there.
    pub fn lock(path: &Path) -> Result<Self, WalError> {
        if !path.is_dir() {
            create_folder(path).at("create", path)?;
        }
        let folder = File::open(path).at("open", path)?;
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.into(), folder }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(WalError::Locked { path: path.into() }),
            Err(other) => Err(io::Error::from(other)).at("lock", path),
        }
    }
}

fn create_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

impl Disk for RealDisk {
    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.path)?.map(|entry| entry.map(|entry| entry.file_name()));
        names.filter_map(|name| name.map(|name| name.into_string().ok()).transpose()).collect()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(self.path(name))?;
        Ok(Arc::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(true).open(self.path(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.folder.sync_all()
    }
}

impl DiskFile for File {
    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// An open file that says which one it is when something fails.
#[derive(Clone)]
pub(crate) struct NamedFile {
    pub(crate) path: PathBuf,
    file: Arc<dyn DiskFile>,
}

impl NamedFile {
    pub(crate) fn create(disk: &dyn Disk, name: &str) -> Result<Self, WalError> {
        let path = disk.path(name);
        let file = disk.create(name).at("create", &path)?;
        Ok(Self { path, file })
    }

    pub(crate) fn open(disk: &dyn Disk, name: &str) -> Result<Self, WalError> {
        let path = disk.path(name);
        let file = disk.open(name).at("open", &path)?;
        Ok(Self { path, file })
    }

    /// The same file, by the name it has now.
    pub(crate) fn renamed(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    pub(crate) fn length(&self) -> Result<u64, WalError> {
        self.file.length().at("read the length of", &self.path)
    }

    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, WalError> {
        let mut bytes = vec![0; length];
        self.file.read_at(&mut bytes, offset).at("read", &self.path)?;
        Ok(bytes)
    }

    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), WalError> {
        self.file.write_at(bytes, offset).at("write", &self.path)
    }

    pub(crate) fn sync(&self) -> Result<(), WalError> {
        self.file.sync().at("sync", &self.path)
    }

    /// The error of a place in this file that is not as it was written.
    pub(crate) fn damaged(&self, offset: u64, expected: impl Into<String>) -> WalError {
        WalError::Damaged { path: self.path.clone(), offset, expected: expected.into() }
    }
}

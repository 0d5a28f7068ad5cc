//! Every access to a file: what the node needs of a folder and its files, and the real ones.
//!
//! Traits, so that a simulation can take the power away at any moment: a write is durable when its file was synced after
//! it, a name when its folder was.

#![warn(missing_docs)]

mod contents;
mod real;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use contents::{Reader, Writer, read, write_whole};
pub use real::RealFolder;

/// A folder, and what is in it. A lock lasts for as long as the value that took it.
pub trait Folder: Send + Sync {
    /// Where what has this name is, for messages; the folder itself by an empty name.
    fn path(&self, name: &str) -> PathBuf;
    /// The names of all files and folders in it, in any order.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Makes an empty file, in the place of whatever has this name.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Opens a file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Gives a file another name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file; who has it open can go on reading it.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes all names durable.
    fn sync_names(&self) -> io::Result<()>;
    /// A folder in it; made, durably, where there is none.
    fn folder(&self, name: &str) -> io::Result<Arc<dyn Folder>>;
    /// Takes the folder for this process alone; `WouldBlock` where another one has it.
    fn lock(&self) -> io::Result<()>;

    /// Whether something has this name.
    fn has(&self, name: &str) -> io::Result<bool> {
        Ok(self.names()?.iter().any(|known| known == name))
    }
}

/// An open file.
pub trait File: Send + Sync {
    /// Its size in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Fills the buffer from this offset on, or fails.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all bytes from this offset on; the file grows as needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes all writes durable.
    fn sync(&self) -> io::Result<()>;
}

/// Opens the folder at a path of this machine; makes it, durably, where there is none.
///
/// # Errors
/// The system refuses.
pub fn real(path: &Path) -> io::Result<Arc<dyn Folder>> {
    Ok(Arc::new(RealFolder::open(path)?))
}

//! Reads the small files that a playbook names for a connection: certificates, keys, a password.
//!
//! What is no regular file, or a large one, is refused: a pipe would be waited for without end.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, time::SystemTime};

use super::error::ObserveError;
use crate::regular_file;

/// How many bytes such a file may have.
const MAX_BYTES: usize = 1024 * 1024;

/// What a file looks like from outside; it is another one after the file was changed or put in another's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: (u64, u64),
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// `None` where there is no such file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self { inode: (found.dev(), found.ino()), bytes: found.len(), modified: found.modified().ok() })
    }
}

/// What the file holds.
///
/// # Errors
/// [`ObserveError::File`]
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ObserveError> {
    let bytes = regular_file::read(path, MAX_BYTES);
    bytes.map_err(|error| ObserveError::File { path: path.to_owned(), source: error.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "secret").unwrap();
        assert_eq!(read(&path).unwrap(), b"secret");
        fs::write(&path, vec![b'x'; 1024 * 1024 + 1]).unwrap();
        assert!(read(&path).is_err());
        assert!(read(folder.path()).is_err());
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(read(&pipe).is_err(), "nobody writes to it, and it is not waited for");
    }
}

//! Reads the small files that a playbook names for a connection: certificates, keys, a password.
//!
//! What is no regular file, or a large one, is refused: a pipe would be waited for without end.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
    time::SystemTime,
};

use super::error::ObserveError;

/// How many bytes such a file may have.
const MAX_BYTES: u64 = 1024 * 1024;

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
    bounded(path).map_err(|source| ObserveError::File { path: path.to_owned(), source })
}

fn bounded(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for whoever writes it.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MAX_BYTES => Ok(bytes),
        _ => Err(io::Error::other("it has more than 1 MiB")),
    }
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

//! The file that `etcdctl snapshot save` writes from this node: the state's bytes, zeros up to 512, and SHA-256 over all that
//! (`serve/snapshot.rs`).

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use crc32c::crc32c_append;
use sha2::{Digest, Sha256};

use crate::state::{Restore, State, StateError};

/// What the state's bytes are filled up to a multiple of.
const SECTOR_BYTES: usize = 512;
const DIGEST_BYTES: u64 = 32;
const PIECE_BYTES: usize = 64 << 10;
/// Where a file of bbolt says that it is one, and what it says there (bbolt, `meta`).
const BBOLT_MAGIC: (usize, u32) = (16, 0xed0c_daed);

/// What a file holds.
#[derive(Debug)]
pub struct Saved {
    pub state: State,
    /// CRC-32C of all before the SHA-256.
    pub hash: u32,
    /// Of all before that.
    pub size_bytes: u64,
    /// SHA-256 of the same bytes, computed and not read.
    pub digest: [u8; 32],
}

/// Whether the SHA-256 at the end must be there and right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashCheck {
    Done,
    /// It may be missing or wrong. The state has checksums of its own, which still count.
    Skipped,
}

/// Why a file is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A folder, a pipe.
    #[error("{}: expected a file that `etcdctl snapshot save` has written", path.display())]
    NoFile { path: PathBuf },
    /// etcd wrote it.
    #[error(
        "{} is a snapshot of etcd (a bbolt database), and not of this node: `etcdutl snapshot` reads it", path.display()
    )]
    OfEtcd { path: PathBuf },
    /// Its length is not one of a snapshot.
    #[error(
        "{} does not end in a hash: it is cut off, or no snapshot. Save it again with `etcdctl snapshot save`; if it never had a \
         hash, `node snapshot restore --skip-hash-check` reads it",
        path.display()
    )]
    NoHash { path: PathBuf },
    /// The hash at its end is that of other bytes.
    #[error(
        "{} does not match the hash at its end: it is damaged or cut off, or no snapshot. Save it again with `etcdctl snapshot \
         save`, or take another copy",
        path.display()
    )]
    WrongHash { path: PathBuf },
    /// Its bytes are no state.
    #[error("{} is not a snapshot that this node can read: {source}", path.display())]
    State { path: PathBuf, source: StateError },
}

/// Reads a whole file.
///
/// # Errors
/// [`FileError`]
pub fn read(path: &Path, check: HashCheck) -> Result<Saved, FileError> {
    let failed = |source| FileError::Io { path: path.into(), source };
    // A pipe would never open.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(FileError::NoFile { path: path.into() });
    }
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    // etcd, `hasChecksum` in etcdutl/snapshot.
    let has_hash = length % SECTOR_BYTES as u64 == DIGEST_BYTES;
    let size_bytes = if has_hash { length - DIGEST_BYTES } else { length };

    let (mut restore, mut no_state) = (Restore::filled_up(SECTOR_BYTES - 1), None);
    let (mut digest, mut hash, mut left) = (Sha256::new(), 0, size_bytes);
    let mut piece = vec![0; PIECE_BYTES];
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let read = &mut piece[..most];
        file.read_exact(read).map_err(failed)?;
        if left == size_bytes && is_of_bbolt(read) {
            return Err(FileError::OfEtcd { path: path.into() });
        }
        left -= read.len() as u64;
        digest.update(&*read);
        hash = crc32c_append(hash, read);
        // Bytes that were changed on their way are the likelier cause, so the hash comes first.
        if no_state.is_none() {
            no_state = restore.push(read).err();
        }
    }
    let digest: [u8; 32] = digest.finalize().into();
    if check == HashCheck::Done {
        if !has_hash {
            return Err(FileError::NoHash { path: path.into() });
        }
        let mut said = [0; DIGEST_BYTES as usize];
        file.read_exact(&mut said).map_err(failed)?;
        if said != digest {
            return Err(FileError::WrongHash { path: path.into() });
        }
    }
    let state = no_state.map_or_else(|| restore.finish(), Err);
    let state = state.map_err(|source| FileError::State { path: path.into(), source })?;
    Ok(Saved { state, hash, size_bytes, digest })
}

fn is_of_bbolt(start: &[u8]) -> bool {
    let (at, magic) = BBOLT_MAGIC;
    start
        .get(at..at + 4)
        .is_some_and(|said| [magic.to_le_bytes(), magic.to_be_bytes()].iter().any(|magic| said == magic))
}

//! How much may still be written somewhere.

use std::{io, path::Path};

/// In bytes, what a user without privileges may still take in this folder's file system.
///
/// # Errors
/// The system's.
pub fn free(folder: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

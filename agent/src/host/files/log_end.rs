//! The end of a log, read by whoever may: the agent, or a process that has become the log's user.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// How many bytes of a log's end are read.
pub(crate) const READ: u64 = 4096;

/// In the process that has become the user: the end of its log.
pub(crate) fn end_as_user(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    end_of(File::options().read(true).custom_flags(flags).open(path)?)
}

pub(crate) fn end_of(mut file: File) -> io::Result<Vec<u8>> {
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    file.seek(SeekFrom::Start(found.len().saturating_sub(READ)))?;
    let mut end = Vec::new();
    file.take(READ).read_to_end(&mut end)?;
    Ok(end)
}

//! The end of a log, read by whoever may: the agent, or a process that has become the log's user.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// How many bytes of a log's end are read: more than the stack that a Go program ends with.
pub(crate) const READ: u64 = 8 * 1024;

/// In the process that has become the user: the end of its log.
pub(crate) fn end_as_user(path: &Path, from: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    end_of(File::options().read(true).custom_flags(flags).open(path)?, from)
}

/// What was written last, nothing of it before `from`; all of it where the file is shorter by now. A line that is read in part is
/// left out.
pub(crate) fn end_of(mut file: File, from: u64) -> io::Result<Vec<u8>> {
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let from = if from <= found.len() { from } else { 0 };
    let begin = from.max(found.len().saturating_sub(READ));
    file.seek(SeekFrom::Start(begin))?;
    let mut end = Vec::new();
    file.take(READ).read_to_end(&mut end)?;
    Ok(if begin > from { whole_lines(&end).to_vec() } else { end })
}

/// Without the first line, of which the beginning is missing; where there is no other, that one.
pub(crate) fn whole_lines(end: &[u8]) -> &[u8] {
    match end.iter().position(|byte| *byte == b'\n') {
        Some(first) if first + 1 < end.len() => &end[first + 1..],
        _ => end,
    }
}

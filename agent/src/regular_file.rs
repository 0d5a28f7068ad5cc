//! A small file that a person names, read whole: a playbook, a matrix, a password, a file to be put in place.
//!
//! What is no regular file may never end, or never begin: a FIFO without a writer, a terminal, `/dev/zero`. It is opened
//! without waiting, looked at, and refused. A pipe that somebody else has opened is read, as `<(…)` and `/dev/stdin` are,
//! within a time.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read},
    os::{
        fd::AsRawFd,
        unix::fs::{FileTypeExt, OpenOptionsExt},
    },
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
};

/// How long the other side of a pipe has to write all of it.
pub const PIPE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{}", why_unreadable(.0))]
    System(#[source] io::Error),
    /// A folder, a FIFO, a device, a socket.
    #[error("this is {0}")]
    NotAFile(&'static str),
    /// A pipe whose other side does not end.
    #[error("this is a pipe, and nobody wrote all of it within {} s", PIPE_TIMEOUT.as_secs())]
    TooSlow,
    /// It is larger than this many bytes.
    #[error("the file is larger than {0} bytes")]
    TooLarge(usize),
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::System(error) => error,
            other => Self::other(other),
        }
    }
}

/// The bytes of a file, at most `limit` of them.
///
/// # Errors
/// [`ReadError`]
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
    let opened = |path: &Path, flags: OFlags| {
        OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path).map_err(ReadError::System)
    };
    // To open a device may do something already.
    let place = opened(path, OFlags::PATH)?;
    let found = place.metadata().map_err(ReadError::System)?;
    if let Some(what) = kind(&found).filter(|_| !found.file_type().is_fifo()) {
        return Err(ReadError::NotAFile(what));
    }
    let same = format!("/proc/self/fd/{}", place.as_raw_fd());
    let file = opened(Path::new(&same), OFlags::NONBLOCK | OFlags::NOCTTY)?;
    let bytes = match kind(&found) {
        None => read_to_end(file, limit).map_err(ReadError::System)?,
        Some(_) if found.file_type().is_fifo() && is_unnamed(&file) => read_pipe(&file, limit)?,
        Some(what) => return Err(ReadError::NotAFile(what)),
    };
    if bytes.len() > limit { Err(ReadError::TooLarge(limit)) } else { Ok(bytes) }
}

fn kind(found: &fs::Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("a folder"),
        () if kind.is_fifo() => Some("a FIFO, not a file"),
        () if kind.is_socket() => Some("a socket, not a file"),
        () => Some("a device, not a file"),
    }
}

/// Whether this pipe has no name in any folder: the shell made it, with a writer at its other side (proc(5)).
fn is_unnamed(pipe: &File) -> bool {
    let link = fs::read_link(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
    link.is_ok_and(|target| target.to_string_lossy().starts_with("pipe:["))
}

fn read_to_end(file: File, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_pipe(mut pipe: &File, limit: usize) -> Result<Vec<u8>, ReadError> {
    let deadline = Instant::now() + PIPE_TIMEOUT;
    let (mut bytes, mut block) = (Vec::new(), [0; 4096]);
    while bytes.len() <= limit {
        let left = deadline.saturating_duration_since(Instant::now());
        // Asked before each read, since a writer that never pauses has its time, too.
        if left.is_zero() {
            return Err(ReadError::TooSlow);
        }
        match pipe.read(&mut block) {
            Ok(0) => return Ok(bytes),
            Ok(length) => bytes.extend_from_slice(&block[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let timeout = Timespec::try_from(left).map_err(|_| ReadError::TooSlow)?;
                match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&timeout)) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(ReadError::System(error.into())),
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(ReadError::System(error)),
        }
    }
    Ok(bytes)
}

fn why_unreadable(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file",
        ErrorKind::NotADirectory => "a part of the path is no folder",
        ErrorKind::IsADirectory => "this is a folder",
        ErrorKind::PermissionDenied => "it may not be read by this user",
        _ => "it cannot be read",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn said(path: &Path) -> String {
        read(path, 10).map(|bytes| String::from_utf8(bytes).unwrap()).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn only_a_file_is_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "0123456789").unwrap();
        fs::write(path("large"), "0123456789a").unwrap();
        mknodat(CWD, path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        std::os::unix::fs::symlink("fifo", path("link")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        for (name, expected) in [
            ("file", "0123456789"),
            ("large", "the file is larger than 10 bytes"),
            ("fifo", "this is a FIFO, not a file"),
            ("link", "this is a FIFO, not a file"),
            ("socket", "this is a socket, not a file"),
            ("", "this is a folder"),
            ("missing", "there is no such file"),
            ("file/below", "a part of the path is no folder"),
        ] {
            assert_eq!(said(&path(name)), expected, "{name}");
        }
        assert_eq!(said(Path::new("/dev/zero")), "this is a device, not a file");
    }
}

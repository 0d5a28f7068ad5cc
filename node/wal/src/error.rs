//! Why the log cannot do what it was asked for.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{entry::LogIndex, record::MAX_PAYLOAD_BYTES, segment::FORMAT};

/// Why a log cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// The system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// A verb: `read`, `write`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another process has this log open.
    #[error("{} is in use by another process", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// What a disk must have done: no crash and no loss of power leaves a log like this.
    #[error("{}, byte {offset}: damaged, expected {expected}", path.display())]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What should be there.
        expected: String,
    },
    /// A segment that later ones build upon is not there.
    #[error("{} is missing: the segments after it do not hold the whole log", path.display())]
    Missing {
        /// The segment.
        path: PathBuf,
    },
    /// A format from the future.
    #[error("{} has format {found}, written by a newer release; this one knows {FORMAT}", path.display())]
    Newer {
        /// The segment.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// The request makes no sense; nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A write or a sync failed before. What the disk holds since is not known, so nothing is tried again: the log has
    /// to be opened anew.
    #[error("the log takes and gives nothing more since it failed")]
    Failed(#[source] Arc<WalError>),
}

/// What a caller must not ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It would leave a hole in the log, or write over an entry.
    #[error("the log goes on with entry {expected}, not {found}")]
    Hole {
        /// The index that comes next.
        expected: LogIndex,
        /// The index that was given.
        found: LogIndex,
    },
    /// A committed entry is never removed (raft paper, section 5.4: leader completeness).
    #[error("entries up to {committed} are committed, so none is removed from {from} on")]
    Committed {
        /// The last one.
        committed: LogIndex,
        /// The first that was to be removed.
        from: LogIndex,
    },
    /// An entry that is not in the log cannot be committed.
    #[error("entry {committed} cannot be committed: the log goes on with entry {next}")]
    AheadOfLog {
        /// What was to be committed.
        committed: LogIndex,
        /// The index that comes next.
        next: LogIndex,
    },
    /// More than a record holds.
    #[error("{bytes} bytes do not go into a record, which takes {MAX_PAYLOAD_BYTES}")]
    TooLarge {
        /// The size of the payload or vote.
        bytes: usize,
    },
}

impl WalError {
    /// The kind of the system's answer, where there is one.
    fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Io { source, .. } => source.kind(),
            Self::Failed(first) => first.kind(),
            Self::Locked { .. } => io::ErrorKind::ResourceBusy,
            Self::Damaged { .. } | Self::Missing { .. } | Self::Newer { .. } => io::ErrorKind::InvalidData,
            Self::Refused(_) => io::ErrorKind::InvalidInput,
        }
    }
}

impl From<WalError> for io::Error {
    fn from(error: WalError) -> Self {
        Self::new(error.kind(), error)
    }
}

/// Gives an I/O error its place.
pub(crate) trait At<T> {
    /// Names the file and what was being done to it.
    fn at(self, doing: &'static str, path: &Path) -> Result<T, WalError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, WalError> {
        self.map_err(|source| WalError::Io { doing, path: path.into(), source })
    }
}

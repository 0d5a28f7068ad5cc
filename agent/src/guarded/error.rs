//! Why a file was not used.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::words::typed;

/// What could not be done to which file.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}", path.display())]
pub struct FileError {
    /// A verb: `read`, `write`.
    pub doing: &'static str,
    pub path: PathBuf,
    /// The system's answer, or an [`Unguarded`].
    pub source: io::Error,
}

impl FileError {
    /// Whether it is not used because of another user, and not because the system refuses.
    pub(crate) fn is_unguarded(&self) -> bool {
        self.source.get_ref().is_some_and(|inner| inner.is::<Unguarded>())
    }

    /// Whether the system lets nobody write there: a read-only file system, an immutable file, missing permission.
    pub(crate) fn is_not_writable(&self) -> bool {
        let kind = self.source.kind();
        !self.is_unguarded() && matches!(kind, io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
    }

    /// Whether it is not there, or a folder on the way to it.
    pub(crate) fn is_absent(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Gives an I/O error its place.
pub(crate) trait At<T> {
    /// Names the file and what was being done to it.
    fn at(self, doing: &'static str, path: &Path) -> Result<T, FileError>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, FileError> {
        self.map_err(|source| FileError { doing, path: path.into(), source: source.into() })
    }
}

/// Another user could decide which file this is, or what is in it. Each says what to type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unguarded {
    /// Its owner may exchange it, or what is in it.
    #[error(
        "{} belongs to uid {owner}, who could put something else there; look at it, then use a folder that is root's all \
         the way from /, or: chown -h {} {}", path.display(), name(*us), typed(&path.to_string_lossy())
    )]
    Owner {
        /// The folder, link or file on the way.
        path: PathBuf,
        owner: u32,
        /// Whose it should be: the agent's user.
        us: u32,
    },
    /// Its group, or everybody, may write to it.
    #[error(
        "{} may be written by others (mode {mode:04o}); look at what is there, then name another folder, or: chmod go-w {}",
        path.display(), typed(&path.to_string_lossy())
    )]
    Writable { path: PathBuf, mode: u32 },
    /// The same file has another name, maybe in a folder of somebody else's.
    #[error(
        "{} is one of {count} names of the same file (hard links), so it may be another's; where it is yours: \
         cp -p {typed} {typed}.copy && mv {typed}.copy {typed}",
        path.display(), typed = typed(&path.to_string_lossy())
    )]
    SeveralNames { path: PathBuf, count: u64 },
    /// It is a link, a folder, a device or the like.
    #[error("{} is no plain file but {kind}; {}", path.display(), instead(path, kind))]
    Kind {
        path: PathBuf,
        /// `a link`, `a folder`.
        kind: &'static str,
    },
}

impl From<Unguarded> for io::Error {
    fn from(unguarded: Unguarded) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, unguarded)
    }
}

/// A device is the host's, and stays.
fn instead(path: &Path, kind: &str) -> String {
    match kind {
        "a device" => "name another file".into(),
        _ => format!("look at it, then: rm {}", typed(&path.to_string_lossy())),
    }
}

fn name(uid: u32) -> String {
    if uid == 0 { "root".into() } else { uid.to_string() }
}

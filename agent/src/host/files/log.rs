//! Opens what a node's stdout and stderr are appended to.
//!
//! Root opens it where nobody else decides what is found under its name; else the node's user does, with its own rights. A
//! node that the agent has stopped is started even if neither can: then its output goes to the state directory, else to
//! `/dev/null`.

use std::{
    ffi::CString,
    fmt,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use nix::unistd::{User, getegid, geteuid, getgroups, initgroups, setegid, seteuid, setgroups};
use rustix::fs::OFlags;

use super::durable;
use crate::{
    guarded::{At, FileError, Place},
    host::{
        program::trial,
        runtime::launch::{NodeCommand, node_file},
    },
    words::{typed, with_causes},
};

/// A log that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the log {}{}{}", path.display(), AsUser(user.as_deref()), self.remedy())]
pub(crate) struct LogError {
    path: PathBuf,
    /// Who tried, where that was not the agent's user.
    user: Option<String>,
    source: FileError,
}

struct AsUser<'a>(Option<&'a str>);

impl fmt::Display for AsUser<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |user| write!(f, " as {user}"))
    }
}

impl LogError {
    /// What to type; empty where the source says it.
    fn remedy(&self) -> String {
        let path = typed(&self.path.to_string_lossy());
        let folder = typed(&self.path.parent().unwrap_or(Path::new("/")).to_string_lossy());
        match (self.source.source.kind(), &self.user) {
            _ if self.source.is_unguarded() => String::new(),
            (io::ErrorKind::NotFound, None) => format!("; type: mkdir -p {folder}"),
            (io::ErrorKind::NotFound, Some(user)) => format!("; type: mkdir -p {folder} && chown {user} {folder}"),
            (io::ErrorKind::ReadOnlyFilesystem, _) => {
                format!("; type: mount -o remount,rw \"$(findmnt -no TARGET -T {folder})\"")
            }
            (_, Some(user)) => format!(
                ": not only root may change what is found there, so it must be a file of that user's; look at it \
                 (ls -ld {path}), then remove it or: chown -h {user} {path}"
            ),
            (_, None) => format!("; look at it (ls -ld {path}), then remove it or: chmod u+w {path}"),
        }
    }
}

/// Opens it; `user` is the node's where that is another than the agent's.
pub(crate) fn open(path: &Path, user: Option<&User>) -> Result<File, LogError> {
    let named = user.map(|user| user.name.clone());
    let failed = |source| LogError { path: path.into(), user: named, source };
    match (Place::to_append(path).and_then(|place| place.append(Some(0o640))), user) {
        // It is that user's to say what is found there, and never root's.
        (Err(_), Some(user)) => as_user(user, || trial::open_log(path, true)).at("append to", path).map_err(failed),
        (opened, _) => opened.map_err(failed),
    }
}

/// What takes the place of a log that cannot be used.
pub(crate) struct Instead {
    pub(crate) path: PathBuf,
    /// What there is to say of it.
    pub(crate) warning: String,
}

/// Opens that.
pub(crate) fn open_instead(nodes: &Path, command: &NodeCommand, error: LogError) -> Result<(File, Instead), FileError> {
    let path = node_file(nodes, &command.name, "log");
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    let (file, path) = match durable::open(&path, flags, 0o600) {
        Ok(file) => (file, path),
        Err(_) => {
            let nowhere = PathBuf::from("/dev/null");
            (File::options().append(true).open(&nowhere).at("open", &nowhere)?, nowhere)
        }
    };
    let warning =
        format!("until its next start its output goes to {}, since it {}", path.display(), with_causes(&error));
    Ok((file, Instead { path, warning }))
}

/// With another user's rights for as long as this takes: only root can take them and come back.
fn as_user<T>(user: &User, open: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let name = CString::new(user.name.as_str())?;
    let (uid, gid, groups) = (geteuid(), getegid(), getgroups()?);
    initgroups(&name, user.gid)?;
    setegid(user.gid)?;
    seteuid(user.uid)?;
    let opened = open();
    seteuid(uid)?;
    setegid(gid)?;
    setgroups(&groups)?;
    opened
}

//! A folder of the member's: its user may put there what he likes, so each name is opened for what it is. A link is not followed, and
//! what is no plain file is not opened at all.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
};

use rustix::fs::{Dir, Mode, OFlags, open, openat};

/// A folder with more names is not etcd's.
const MAX_NAMES: usize = 100_000;

/// A folder that is held open.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// The path itself may have links: operators put a log on another disk so.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// The names that end so, in their order.
    pub(super) fn names(&self, ending: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for (at, entry) in Dir::read_from(&self.0)?.enumerate() {
            if at == MAX_NAMES {
                return Err(io::Error::other("its folder has too many names"));
            }
            let entry = entry?;
            // Those of etcd are ASCII.
            names.extend(entry.file_name().to_str().ok().filter(|name| name.ends_with(ending)).map(str::to_owned));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// A file of it, to be read.
    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        let place =
            File::from(openat(&self.0, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?);
        if !place.metadata()?.is_file() {
            return Err(io::Error::other("what has the name of one of its files is no plain file"));
        }
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let same = format!("/proc/self/fd/{}", place.as_raw_fd());
        OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(same)
    }
}

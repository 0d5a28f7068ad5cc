//! The walk to a file: from `/`, one descriptor after the other, following links by hand.
//!
//! A link is followed only where nobody else can have made it. No call resolves more than one name, so no link is
//! followed that was not judged.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io,
    os::{
        fd::AsFd,
        unix::{ffi::OsStringExt, fs::MetadataExt},
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, accessat, fchmod, mkdirat, openat, readlinkat},
    io::Errno,
    process::geteuid,
};

use super::{
    error::{At, FileError, Unguarded},
    place::Place,
    rule::{self, Bits, Sharing, Way},
};

/// As many links are followed (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// A folder that is held open, into which nobody but root and the agent's user can put another.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Opened as a path only (`O_PATH`, open(2)).
    handle: File,
    /// The way here, without a link.
    path: PathBuf,
    sharing: Sharing,
    way: Way,
}

pub(super) struct Walked {
    pub(super) folder: Folder,
    /// What is left; `None` where the path names the folder itself, such as `/`.
    pub(super) name: Option<OsString>,
    /// Whether a link was in the place of the last name.
    pub(super) was_link: bool,
}

/// Whether a link under the last name is followed, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastLink {
    Follow,
    Keep,
}

pub(super) fn us() -> u32 {
    geteuid().as_raw()
}

pub(super) fn bits(metadata: &Metadata) -> Bits {
    Bits { owner: metadata.uid(), mode: metadata.mode() & 0o7777 }
}

/// Walks up to the last name of a path, which need not exist.
pub(super) fn walk(path: &Path, last: LastLink, way: Way) -> io::Result<Walked> {
    let mut todo = parts(&std::path::absolute(path)?);
    let mut here = Folder::root(way)?;
    let (mut links, mut was_link) = (0, false);
    while let Some(name) = todo.pop() {
        if name == ".." {
            here = here.parent()?;
            continue;
        }
        let is_last = todo.is_empty();
        if is_last {
            here.is_no_groups()?;
        }
        let found = match here.entry(&name)? {
            Some(found) => found,
            None if is_last => return Ok(Walked { folder: here, name: Some(name), was_link }),
            None => return Err(Errno::NOENT.into()),
        };
        let kind = found.metadata()?.file_type();
        if kind.is_symlink() && !(is_last && last == LastLink::Keep) {
            here.is_no_groups()?;
            links += 1;
            if links > MOST_LINKS {
                return Err(Errno::LOOP.into());
            }
            was_link |= is_last;
            let target = PathBuf::from(OsString::from_vec(readlinkat(&found, "", Vec::new())?.into_bytes()));
            if target.is_absolute() {
                here = Folder::root(way)?;
            }
            todo.extend(parts(&target));
        } else if is_last {
            return Ok(Walked { folder: here, name: Some(name), was_link });
        } else if kind.is_dir() {
            here = here.enter(&name)?;
        } else {
            return Err(Errno::NOTDIR.into());
        }
    }
    Ok(Walked { folder: here, name: None, was_link })
}

/// The names of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

impl Folder {
    /// A folder that is nobody else's: others can not add names to it, either.
    pub(crate) fn open(path: &Path) -> Result<Self, FileError> {
        let Walked { folder, name, .. } = walk(path, LastLink::Follow, Way::Strict).at("open", path)?;
        let folder = match name {
            Some(name) => folder.enter(&name).at("open", path)?,
            None => folder,
        };
        folder.is_own().at("use", path)?;
        Ok(folder)
    }

    /// Makes a folder with this mode, and its parents with the usual one, each of them durable; one that is there is
    /// left as it is, but it must be nobody else's. The umask of whoever started the agent has no part in it: under 077
    /// a release would be of no use to the user that its node runs as.
    pub(crate) fn make(path: &Path, mode: u32) -> Result<Self, FileError> {
        match Self::open(path) {
            Err(error) if error.is_absent() => {}
            found => return found,
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            match Self::make(parent, 0o755) {
                // What is made in a folder for all, such as /tmp, is ours all the same.
                Err(error) if error.is_unguarded() => {}
                made => drop(made?),
            }
        }
        let place = Place::of(path)?;
        let (parent, name) = (place.folder(), place.name());
        match mkdirat(&parent.handle, name, Mode::from_raw_mode(mode)) {
            Err(Errno::EXIST) => {}
            made => {
                made.at("create", path)?;
                let made = openat(&parent.handle, name, FOLDER | OFlags::RDONLY, Mode::empty()).at("open", path)?;
                fchmod(made, Mode::from_raw_mode(mode)).at("set the mode of", path)?;
            }
        }
        parent.sync()?;
        Self::open(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn handle(&self) -> impl AsFd {
        &self.handle
    }

    /// Makes the names in it durable.
    pub(super) fn sync(&self) -> Result<(), FileError> {
        let opened = openat(&self.handle, ".", FOLDER | OFlags::RDONLY, Mode::empty()).at("open", &self.path)?;
        rustix::fs::fsync(opened).at("fsync", &self.path)
    }

    /// Looks whether names in it may be changed; a file system that is mounted read-only and a folder that is immutable
    /// are seen too (access(2)).
    pub(super) fn check_writable(&self) -> Result<(), FileError> {
        let opened = openat(&self.handle, ".", FOLDER | OFlags::RDONLY, Mode::empty()).at("read", &self.path)?;
        let needed = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        accessat(&opened, ".", needed, AtFlags::EACCESS).at("write to the folder", &self.path)
    }

    /// What has this name, opened as a path only; in a folder for all it must be nobody else's.
    pub(super) fn entry(&self, name: &OsStr) -> io::Result<Option<File>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = match openat(&self.handle, name, flags, Mode::empty()) {
            Ok(found) => File::from(found),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.judge_entry(name, &found.metadata()?)?;
        Ok(Some(found))
    }

    /// In a folder for all a name's owner may exchange it.
    pub(super) fn judge_entry(&self, name: &OsStr, found: &Metadata) -> Result<(), Unguarded> {
        match self.sharing {
            Sharing::Own => Ok(()),
            Sharing::Shared | Sharing::Group => rule::owner(&self.path.join(name), found.uid(), us()),
        }
    }

    fn is_own(&self) -> io::Result<()> {
        match self.sharing {
            Sharing::Own => Ok(()),
            Sharing::Shared | Sharing::Group => self.is_written_by_others(),
        }
    }

    /// What a group may exchange is passed, and neither used nor followed.
    fn is_no_groups(&self) -> io::Result<()> {
        match self.sharing {
            Sharing::Own | Sharing::Shared => Ok(()),
            Sharing::Group => self.is_written_by_others(),
        }
    }

    fn is_written_by_others(&self) -> io::Result<()> {
        let mode = bits(&self.handle.metadata()?).mode;
        Err(Unguarded::Writable { path: self.path.clone(), mode }.into())
    }

    fn root(way: Way) -> io::Result<Self> {
        let handle = openat(CWD, "/", FOLDER | OFlags::PATH, Mode::empty())?;
        Self::judged(handle.into(), "/".into(), way)
    }

    fn parent(&self) -> io::Result<Self> {
        let handle = openat(&self.handle, "..", FOLDER | OFlags::PATH, Mode::empty())?;
        Self::judged(handle.into(), self.path.parent().unwrap_or(Path::new("/")).into(), self.way)
    }

    /// As a folder: only so is one mounted that is mounted when it is used (autofs(5)).
    fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let handle = openat(&self.handle, name, FOLDER | OFlags::PATH, Mode::empty())?;
        Self::judged(handle.into(), self.path.join(name), self.way)
    }

    fn judged(handle: File, path: PathBuf, way: Way) -> io::Result<Self> {
        let sharing = rule::folder(&path, bits(&handle.metadata()?), us(), way)?;
        Ok(Self { handle, path, sharing, way })
    }
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

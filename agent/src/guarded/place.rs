//! A name in a folder that is held open, and what is done with the file that has it.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, FileType, Metadata},
    io::{self, Read, Write},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, FlockOperation, Mode, OFlags, StatxAttributes, StatxFlags, fcntl_setfl, flock, openat, renameat,
        statx, symlinkat, unlinkat,
    },
    io::Errno,
};

use super::{
    access::Access,
    error::{At, FileError, Unguarded},
    rule::{self, Way},
    walk::{Folder, LastLink, Walked, bits, us, walk},
};

/// The most that is read of a file, in bytes.
const MOST_READ: u64 = 64 << 20;

/// Whose the content of a file may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The agent goes by it: it is root's or the agent's own, and nobody else may write to it.
    Believed,
    /// It may be anybody's, such as the configuration of a node that runs as another user.
    Anybodys,
    /// As [`Content::Anybodys`], and only compared with what is to take its place by a rename, which leaves a file's other
    /// names alone: so it may have some.
    Compared,
}

/// Where a path leads. That the name is there is not said.
#[derive(Debug)]
pub(crate) struct Place {
    folder: Folder,
    name: OsString,
    was_link: bool,
}

impl Place {
    /// Where a path leads through all links, the last name's too.
    pub(crate) fn of(path: &Path) -> Result<Self, FileError> {
        Self::walked(path, LastLink::Follow, Way::Strict)
    }

    /// As [`Place::of`], for what is only appended to: past folders that a group may write to.
    pub(crate) fn to_append(path: &Path) -> Result<Self, FileError> {
        Self::walked(path, LastLink::Follow, Way::PastGroups)
    }

    /// Where a path lies: a link under the last name stays one.
    pub(crate) fn named(path: &Path) -> Result<Self, FileError> {
        Self::walked(path, LastLink::Keep, Way::Strict)
    }

    fn walked(path: &Path, last: LastLink, way: Way) -> Result<Self, FileError> {
        let Walked { folder, name, was_link } = walk(path, last, way).at("open", path)?;
        let named = name.ok_or_else(|| io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        Ok(Self { folder, name: named.at("open", path)?, was_link })
    }

    /// Its path, without a link on the way.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Whether the path's last name was a link.
    pub(crate) fn was_link(&self) -> bool {
        self.was_link
    }

    pub(crate) fn look(&self) -> Result<Option<Metadata>, FileError> {
        let found = self.folder.entry(&self.name).at("look at", &self.path())?;
        found.map(|found| found.metadata().at("look at", &self.path())).transpose()
    }

    /// Opens a plain file; with [`OFlags::CREATE`] one that is not there is made.
    pub(crate) fn open(&self, flags: OFlags, mode: u32, content: Content) -> Result<File, FileError> {
        let file = self.open_any(flags, mode).at("open", &self.path())?;
        self.judge(&file, content).at("open", &self.path())?;
        Ok(file)
    }

    /// Reads a whole file; `None` when it is not there.
    pub(crate) fn read(&self, content: Content) -> Result<Option<Vec<u8>>, FileError> {
        Ok(self.read_with_access(content)?.map(|(content, _)| content))
    }

    /// As [`Place::read`], with the access that the file has.
    pub(crate) fn read_with_access(&self, content: Content) -> Result<Option<(Vec<u8>, Access)>, FileError> {
        let mut file = match self.open(OFlags::RDONLY, 0, content) {
            Err(error) if error.is_absent() => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        // Another user may let it grow without end.
        (&mut file).take(MOST_READ + 1).read_to_end(&mut bytes).at("read", &self.path())?;
        if bytes.len() as u64 > MOST_READ {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge)).at("read", &self.path());
        }
        Ok(Some((bytes, Access::of(&file).at("look at", &self.path())?)))
    }

    /// Opens what lines are appended to: a file, which is made where there is none and `mode` says how, or a pipe or
    /// device that somebody put there who may. It waits for nobody: not for the reader of a pipe, either.
    pub(crate) fn append(&self, mode: Option<u32>) -> Result<File, FileError> {
        let flags = OFlags::WRONLY | OFlags::APPEND;
        let opened = match (self.open_any(flags, 0), mode) {
            (Err(error), Some(mode)) if error.kind() == io::ErrorKind::NotFound => {
                self.open_any(flags | OFlags::CREATE | OFlags::EXCL, mode)
            }
            (opened, _) => opened,
        };
        let file = opened.at("open", &self.path())?;
        let kind = file.metadata().at("look at", &self.path())?.file_type();
        if !(kind.is_fifo() || kind.is_char_device()) {
            self.judge(&file, Content::Anybodys).at("open", &self.path())?;
        }
        Ok(file)
    }

    fn open_any(&self, flags: OFlags, mode: u32) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        match openat(self.folder.handle(), &self.name, flags, Mode::from_raw_mode(mode)) {
            Ok(file) => {
                let file = File::from(file);
                self.folder.judge_entry(&self.name, &file.metadata()?)?;
                Ok(file)
            }
            Err(Errno::LOOP) => Err(Unguarded::Kind { path: self.path(), kind: "a link" }.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// By the descriptor, so that it is this file that is judged and no other.
    fn judge(&self, file: &File, content: Content) -> io::Result<()> {
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(Unguarded::Kind { path: self.path(), kind: kind(found.file_type()) }.into());
        }
        // One that was replaced since it was opened has no name any more.
        if found.nlink() > 1 && content != Content::Compared {
            return Err(Unguarded::SeveralNames { path: self.path(), count: found.nlink() }.into());
        }
        if content == Content::Believed {
            rule::believed(&self.path(), bits(&found), us())?;
        }
        Ok(())
    }

    /// Puts a file with this content in the place of whatever file has the name: it is there in full after a power
    /// loss, or not at all. So it is written under a temporary name, fsynced, renamed, and the folder fsynced after it.
    pub(crate) fn write(&self, content: &[u8], access: &Access) -> Result<(), FileError> {
        let temporary = self.temporary();
        let written = temporary.write_new(content, access).and_then(|()| temporary.rename_to(self));
        if written.is_err() {
            let _ = temporary.remove_if_there();
        }
        written?;
        self.folder.sync()
    }

    /// Begins a file that is written bit by bit, beside its name; it gets that by [`Unfinished::finish`].
    pub(crate) fn begin(&self) -> Result<Unfinished<'_>, FileError> {
        let mut name = temporary_name(&self.name);
        name.push(format!(".{}", std::process::id()));
        let temporary = TemporaryPlace { folder: &self.folder, name };
        let file = temporary.open_new()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(io::Error::from)
            .at("lock", &temporary.path())?;
        Ok(Unfinished { temporary, place: self, file })
    }

    /// Does what [`Place::write`] would do but for the rename. The file is there until the rehearsal is dropped.
    pub(crate) fn rehearse(&self, content: &[u8], access: &Access) -> Result<Rehearsal<'_>, FileError> {
        let rehearsal = Rehearsal(self.temporary());
        rehearsal.0.write_new(content, access).map(|()| rehearsal)
    }

    /// Puts a link in the place of whatever has the name, in one rename and durably.
    pub(crate) fn write_link(&self, target: &Path) -> Result<(), FileError> {
        let temporary = self.temporary();
        temporary.link_new(target)?;
        temporary.rename_to(self)?;
        self.folder.sync()
    }

    /// Does what [`Place::write_link`] would do but for the rename, and undoes it.
    pub(crate) fn rehearse_link(&self, target: &Path) -> Result<(), FileError> {
        let temporary = self.temporary();
        temporary.link_new(target)?;
        temporary.remove_if_there()
    }

    /// Removes a file, or the link that is one; one that is not there is fine.
    pub(crate) fn remove_if_there(&self) -> Result<(), FileError> {
        match unlinkat(self.folder.handle(), &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error).at("remove", &self.path()),
        }
    }

    pub(crate) fn sync(&self) -> Result<(), FileError> {
        self.folder.sync()
    }

    /// Looks whether the name could be given to another file. Root may write to any folder, but nobody may rename over
    /// a file that is immutable (chattr(1)).
    pub(crate) fn check_writable(&self) -> Result<(), FileError> {
        self.folder.check_writable()
    }

    /// Whether nobody may change the file, or only append to it (chattr(1)).
    pub(crate) fn is_immutable(&self) -> Result<bool, FileError> {
        let marks = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        match statx(self.folder.handle(), &self.name, flags, StatxFlags::BASIC_STATS) {
            Err(Errno::NOENT) => Ok(false),
            found => Ok(found.at("look at", &self.path())?.stx_attributes.intersects(marks)),
        }
    }

    /// The name that is used beside this one until the file is complete. What an earlier crash left there was never
    /// complete, and may have other permissions: it is removed, not used.
    fn temporary(&self) -> TemporaryPlace<'_> {
        TemporaryPlace { folder: &self.folder, name: temporary_name(&self.name) }
    }
}

/// Whether this is the name of a file that [`Place::begin`] began for a file of such a name.
pub(crate) fn is_unfinished(name: &OsStr, of: impl Fn(&str) -> bool) -> bool {
    let written = name.to_str().and_then(|name| name.strip_prefix('.')?.split_once(".baton-new."));
    written.is_some_and(|(name, pid)| of(name) && pid.parse::<u32>().is_ok())
}

/// A file that is being written, and locked. Dropped before its end, it is gone; one whose process was killed is nobody's, and is not
/// locked any more.
pub(crate) struct Unfinished<'p> {
    temporary: TemporaryPlace<'p>,
    place: &'p Place,
    pub(crate) file: File,
}

impl Unfinished<'_> {
    /// Fsyncs it, and gives it its name durably, in the place of whatever file has that.
    pub(crate) fn finish(self) -> Result<(), FileError> {
        self.file.sync_all().at("fsync", &self.temporary.path())?;
        self.temporary.rename_to(self.place)?;
        self.place.sync()
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let _ = self.temporary.remove_if_there();
    }
}

/// A file that is written, and not going to be renamed.
pub(crate) struct Rehearsal<'p>(TemporaryPlace<'p>);

impl Rehearsal<'_> {
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path()
    }

    /// Removes it, and says whether that was done.
    pub(crate) fn end(self) -> Result<(), FileError> {
        self.0.remove_if_there()
    }
}

impl Drop for Rehearsal<'_> {
    fn drop(&mut self) {
        let _ = self.0.remove_if_there();
    }
}

struct TemporaryPlace<'p> {
    folder: &'p Folder,
    name: OsString,
}

impl TemporaryPlace<'_> {
    fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    fn open_new(&self) -> Result<File, FileError> {
        self.remove_if_there()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(self.folder.handle(), &self.name, flags, Mode::from_raw_mode(0o600));
        Ok(File::from(opened.at("create", &self.path())?))
    }

    fn write_new(&self, content: &[u8], access: &Access) -> Result<(), FileError> {
        let mut file = self.open_new()?;
        file.write_all(content).at("write", &self.path())?;
        access.give_to(&file).at("set owner, mode and attributes of", &self.path())?;
        file.sync_all().at("fsync", &self.path())
    }

    fn link_new(&self, target: &Path) -> Result<(), FileError> {
        self.remove_if_there()?;
        symlinkat(target, self.folder.handle(), &self.name).at("create", &self.path())
    }

    fn rename_to(&self, place: &Place) -> Result<(), FileError> {
        let folder = self.folder.handle();
        renameat(&folder, &self.name, &folder, &place.name).at("replace", &place.path())
    }

    fn remove_if_there(&self) -> Result<(), FileError> {
        match unlinkat(self.folder.handle(), &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error).at("remove", &self.path()),
        }
    }
}

/// The name beside a file's until the content is complete.
pub(crate) fn temporary_name(name: &OsStr) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(".baton-new");
    temporary
}

fn kind(found: FileType) -> &'static str {
    if found.is_dir() {
        "a folder"
    } else if found.is_symlink() {
        "a link"
    } else if found.is_fifo() {
        "a pipe"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// Makes the writes of what [`Place::append`] opened wait again, as a node expects of its stdout.
pub(crate) fn wait_for_writes(file: &File) -> io::Result<()> {
    Ok(fcntl_setfl(file, OFlags::APPEND)?)
}

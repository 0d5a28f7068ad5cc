//! The agent's own files: there in full after a power loss, or not at all, and nobody else's.
//!
//! A file's content is durable when it was fsynced, its name when its folder was. Each is opened as `guarded/` does it,
//! and a link in its place is refused.

use std::{
    fs::{self, File},
    path::Path,
};

use rustix::fs::OFlags;

pub(crate) use crate::guarded::At;
pub use crate::guarded::{Access, FileError};
use crate::guarded::{Content, Folder, Place};

/// Puts a file with this content in the place of whatever file has this name.
pub fn write(path: &Path, content: &[u8], access: &Access) -> Result<(), FileError> {
    Place::named(path)?.write(content, access)
}

/// Opens a file that the agent believes; with [`OFlags::CREATE`] one that is not there is made.
pub(crate) fn open(path: &Path, flags: OFlags, mode: u32) -> Result<File, FileError> {
    Place::named(path)?.open(flags, mode, Content::Believed)
}

/// As [`open()`]; `None` when it is not there.
pub(crate) fn open_if_there(path: &Path, flags: OFlags) -> Result<Option<File>, FileError> {
    match open(path, flags, 0) {
        Err(error) if error.is_absent() => Ok(None),
        file => file.map(Some),
    }
}

/// Opens the file of a lock; one that is not there is made. Where nothing can be written any more, such as on a file system
/// that became read-only, it is opened for reading: flock(2) needs no more, and a member that is down is started.
pub(crate) fn open_lock(path: &Path) -> Result<File, FileError> {
    match open(path, OFlags::RDWR | OFlags::CREATE, 0o600) {
        Err(error) if error.is_not_writable() => open_if_there(path, OFlags::RDONLY)?.ok_or(error),
        opened => opened,
    }
}

/// Removes a file durably; one that is not there is fine.
pub fn remove(path: &Path) -> Result<(), FileError> {
    let place = Place::named(path)?;
    place.remove_if_there()?;
    place.sync()
}

pub(crate) fn remove_if_there(path: &Path) -> Result<(), FileError> {
    Place::named(path)?.remove_if_there()
}

/// Removes a folder with all that is in it, durably; one that is not there is fine. No link is followed.
pub(crate) fn remove_tree(path: &Path) -> Result<(), FileError> {
    let place = match Place::named(path) {
        Err(error) if error.is_absent() => return Ok(()),
        place => place?,
    };
    if place.look()?.is_none() {
        return Ok(());
    }
    fs::remove_dir_all(place.path()).at("remove", path)?;
    place.sync()
}

/// Reads a whole file; `None` when it is not there.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match Place::named(path) {
        Err(error) if error.is_absent() => Ok(None),
        place => place?.read(Content::Believed),
    }
}

/// Makes a folder with this mode, and its parents with the usual one, each of them durable; one that is there is left as
/// it is, but must be nobody else's.
pub fn create_folder(path: &Path, mode: u32) -> Result<(), FileError> {
    Folder::make(path, mode).map(drop)
}

/// Makes the names in a folder durable.
pub fn sync_folder(path: &Path) -> Result<(), FileError> {
    File::open(path).and_then(|folder| folder.sync_all()).at("fsync", path)
}

/// Makes the name of `path` durable.
pub fn sync_folder_of(path: &Path) -> Result<(), FileError> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_folder(Path::new(".")),
        Some(parent) => sync_folder(parent),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::guarded::place::temporary_name;

    #[test]
    fn a_written_file_has_its_content_and_mode_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("conf");
        fs::write(path.with_file_name(temporary_name("conf".as_ref())), "left by a crash").unwrap();
        for (content, mode) in [("one", 0o640), ("two, longer", 0o600), ("", 0o755)] {
            write(&path, content.as_bytes(), &Access::of_mode(mode)).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_replaced_names_itself_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("conf");
        fs::create_dir(&path).unwrap();
        let error = write(&path, b"x", &Access::PRIVATE).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot replace {}", path.display()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn folders_are_made_with_their_parents_and_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c");
        create_folder(&path, 0o700).unwrap();
        create_folder(&path, 0o700).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o755);
    }
}

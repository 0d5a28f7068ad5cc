//! Files that are there in full after a power loss, or not at all.
//!
//! A file's content is durable when it was fsynced, its name when its folder was; so a file is written under
//! a temporary name, fsynced, renamed, and the folder fsynced after it.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

/// What could not be done to which file.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}", path.display())]
pub struct FileError {
    /// A verb: `read`, `write`.
    pub doing: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// The system's answer.
    pub source: io::Error,
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

/// Who may do what with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Access {
    /// Permission bits, such as `0o640`.
    pub mode: u32,
    /// Owner and group; `None` leaves them to the system: the agent's own.
    pub owner: Option<(u32, u32)>,
}

impl Access {
    /// For the agent's own eyes.
    pub const PRIVATE: Self = Self { mode: 0o600, owner: None };
}

/// Puts a file with this content in the place of whatever file has this name.
pub fn write(path: &Path, content: &[u8], access: Access) -> Result<(), FileError> {
    let temporary = temporary_name(path);
    // A leftover of an earlier crash: it was never complete, and it may have other permissions.
    remove_if_there(&temporary)?;
    let written =
        write_new(&temporary, content, access).and_then(|()| fs::rename(&temporary, path).at("replace", path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_folder_of(path)
}

/// Does what [`write()`] would do but for the rename, and undoes it.
pub(crate) fn rehearse(path: &Path, content: &[u8], access: Access) -> Result<(), FileError> {
    let temporary = temporary_name(path);
    remove_if_there(&temporary)?;
    let written = write_new(&temporary, content, access);
    let removed = remove_if_there(&temporary);
    written.and(removed)
}

/// Looks whether names in the folder of `path` may be changed; a file system that is mounted read-only and a folder
/// that is immutable are seen too (access(2)).
pub(crate) fn check_folder_of(path: &Path) -> Result<(), FileError> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::read_dir(folder).at("read", folder)?;
    let needed = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::accessat(rustix::fs::CWD, folder, needed, rustix::fs::AtFlags::EACCESS)
        .at("write to the folder", folder)
}

fn write_new(path: &Path, content: &[u8], access: Access) -> Result<(), FileError> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).at("create", path)?;
    file.write_all(content).at("write", path)?;
    if let Some((user, group)) = access.owner {
        fchown(&file, Some(user), Some(group)).at("give to its owner", path)?;
    }
    // After the owner, since a change of owner clears set-id bits; and never through the umask.
    file.set_permissions(Permissions::from_mode(access.mode)).at("set the mode of", path)?;
    file.sync_all().at("fsync", path)
}

/// The name that [`write()`] uses beside `path` until the content is complete.
pub(crate) fn temporary_name(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".baton-new");
    path.with_file_name(name)
}

/// Removes a file durably; one that is not there is fine.
pub fn remove(path: &Path) -> Result<(), FileError> {
    remove_if_there(path)?;
    sync_folder_of(path)
}

pub(crate) fn remove_if_there(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at("remove", path),
        _ => Ok(()),
    }
}

/// Reads a whole file; `None` when it is not there.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("read", path),
    }
}

/// Makes a folder with this mode, and its parents with the usual one, each of them durable; one that is there is
/// left as it is. The umask of whoever started the agent has no part in it: under 077 a release would be of no use to
/// the user that its node runs as.
pub fn create_folder(path: &Path, mode: u32) -> Result<(), FileError> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_folder(parent, 0o755)?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        // Made by somebody else meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        made => made.and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode))).at("create", path)?,
    }
    sync_folder_of(path)
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

/// As [`sync_folder_of`], for a name that is what it should be already: a folder that takes no change has nothing to
/// lose, and a step that has nothing to do there does not fail by it.
pub(crate) fn settle_folder_of(path: &Path) {
    let _ = sync_folder_of(path);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_written_file_has_its_content_and_mode_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("conf");
        fs::write(temporary_name(&path), "left by a crash").unwrap();
        for (content, mode) in [("one", 0o640), ("two, longer", 0o600), ("", 0o755)] {
            write(&path, content.as_bytes(), Access { mode, owner: None }).unwrap();
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
        let error = write(&path, b"x", Access::PRIVATE).unwrap_err();
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

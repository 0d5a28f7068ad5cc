//! Files that change with the release: the new content goes live at the node's own step, and the old one comes back
//! with the old binary.
//!
//! Before the first change the old content is saved under the step's name, with mode and owner, and it is saved once:
//! a step that is repeated after a crash would otherwise save the new content as the old. Extended attributes are not
//! kept. Which file goes with which release is not known here.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags};
use serde::{Deserialize, Serialize};

use super::{
    digest::Sha256,
    durable::{self, Access, At, FileError},
};
use crate::regular_file;

/// A file and what its content is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewContent {
    /// The file that the node reads. A link is followed, and stays a link.
    pub path: PathBuf,
    /// The file that holds the new content.
    pub source: PathBuf,
    /// Whom a file that was not there belongs to, user and group; the agent where there is none.
    pub owner: Option<(u32, u32)>,
}

/// Why a file was not switched or put back.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is a folder, a device or the like.
    #[error("{} is no plain file, so it is not replaced", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// It is marked as one that nobody may change.
    #[error("{} is immutable (chattr +i) or append-only, so it cannot be replaced", path.display())]
    Immutable {
        /// The path.
        path: PathBuf,
    },
    /// It is a link to nothing.
    #[error("{} is a link to nothing, so it is not known what to replace", path.display())]
    Dangling {
        /// The path.
        path: PathBuf,
    },
    /// What was saved cannot be read.
    #[error("{} does not say what was saved", path.display())]
    BadSaved {
        /// The file that says it.
        path: PathBuf,
        /// What JSON's reader says.
        source: serde_json::Error,
    },
}

/// The old content of the files of one step, in a folder of the state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    folder: PathBuf,
}

/// What was saved of one file; the content, where there was a file, lies beside it.
#[derive(Debug, Serialize, Deserialize)]
struct Old {
    format: u32,
    path: PathBuf,
    /// `None` when there was no file.
    access: Option<Access>,
}

/// More than any node reads when it starts.
const LARGEST: usize = 64 << 20;

impl NewContent {
    fn content(&self) -> Result<Vec<u8>, FileError> {
        regular_file::read(&self.source, LARGEST).at("read", &self.source)
    }

    /// The mode of its source would, with the agent for an owner, keep its node out of a file that is not for all eyes.
    fn access_when_new(&self) -> Result<Access, FileError> {
        Ok(Access { owner: self.owner, ..access_of(&self.source)? })
    }
}

impl Saved {
    /// For a step; `folder` is the step's alone.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Switches the files, each saved first. Repeated, it does nothing more.
    pub fn switch(&self, files: &[NewContent]) -> Result<(), SwitchError> {
        durable::create_folder(&self.folder, 0o700)?;
        for file in files {
            let path = followed(&file.path)?;
            let content = file.content()?;
            let old = self.save(&path)?;
            set(&path, &content, old.access.map_or_else(|| file.access_when_new(), Ok)?)?;
        }
        Ok(())
    }

    /// Puts all saved files back. Repeated, it does nothing more; with nothing saved there is nothing to do.
    ///
    /// A file that still is as it was is not written: what kept it from being switched would keep it from being put
    /// back, and its node down.
    pub fn put_back(&self) -> Result<(), SwitchError> {
        for old in self.all()? {
            match old.access {
                Some(access) => {
                    let content = self.content_of(&old.path);
                    set(&old.path, &fs::read(&content).at("read", &content)?, access)?;
                }
                None if old.path.exists() => durable::remove(&old.path)?,
                None => durable::settle_folder_of(&old.path),
            }
        }
        Ok(())
    }

    /// Those of a switch's files that have their new content though nothing was saved of them: what was saved is lost.
    pub fn lost(&self, files: &[NewContent]) -> Result<Vec<NewContent>, SwitchError> {
        let mut lost = Vec::new();
        for file in files {
            if !self.description_of(&followed(&file.path)?).exists() && is_switched(file)? {
                lost.push(file.clone());
            }
        }
        Ok(lost)
    }

    /// Forgets what was saved: once the step is done, or undone, for good.
    pub fn forget(&self) -> Result<(), SwitchError> {
        match fs::remove_dir_all(&self.folder) {
            Ok(()) => Ok(durable::sync_folder_of(&self.folder)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).at("remove", &self.folder)?,
        }
    }

    /// The description is written after the content, so that it vouches for it.
    fn save(&self, path: &Path) -> Result<Old, SwitchError> {
        if let Some(old) = self.read(&self.description_of(path))? {
            return Ok(old);
        }
        let old =
            Old { format: 1, path: path.into(), access: if path.exists() { Some(access_of(path)?) } else { None } };
        if old.access.is_some() {
            durable::write(&self.content_of(path), &fs::read(path).at("read", path)?, Access::PRIVATE)?;
        }
        let description = self.description_of(path);
        let json = serde_json::to_vec(&old).at("write", &description)?;
        durable::write(&description, &json, Access::PRIVATE)?;
        Ok(old)
    }

    fn all(&self) -> Result<Vec<Old>, SwitchError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.at("read", &self.folder)?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry.at("read", &self.folder)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                all.extend(self.read(&path)?);
            }
        }
        Ok(all)
    }

    fn read(&self, description: &Path) -> Result<Option<Old>, SwitchError> {
        let Some(json) = durable::read_if_there(description)? else { return Ok(None) };
        let old = serde_json::from_slice(&json);
        old.map(Some).map_err(|source| SwitchError::BadSaved { path: description.into(), source })
    }

    fn description_of(&self, path: &Path) -> PathBuf {
        self.content_of(path).with_extension("json")
    }

    fn content_of(&self, path: &Path) -> PathBuf {
        self.folder.join(Sha256::of(path.as_os_str().as_encoded_bytes()).short()).with_extension("content")
    }
}

/// Gives files their content and saves nothing of what they had.
pub fn install(files: &[NewContent]) -> Result<(), SwitchError> {
    for file in files {
        let path = followed(&file.path)?;
        let access = if path.exists() { access_of(&path)? } else { file.access_when_new()? };
        set(&path, &file.content()?, access)?;
    }
    Ok(())
}

/// Looks, without changing anything, whether the files can be switched. Nothing is asked of the folder of a file that
/// has its new content already.
pub fn check(files: &[NewContent]) -> Result<(), SwitchError> {
    to_write(files)?.iter().try_for_each(|change| change.check())
}

/// Does all of a switch but its last rename, and leaves nothing: to be asked before anything is stopped, since only
/// this finds a full disk, an owner that cannot be given, or a file system that refuses.
pub fn rehearse(files: &[NewContent]) -> Result<(), SwitchError> {
    for change in to_write(files)? {
        change.check()?;
        let new = Access { owner: change.owner, ..Access::PRIVATE };
        let access = if change.path.exists() { access_of(&change.path)? } else { new };
        durable::rehearse(&change.path, &change.content, access)?;
    }
    Ok(())
}

/// A file that a switch would write.
struct Change {
    path: PathBuf,
    content: Vec<u8>,
    owner: Option<(u32, u32)>,
}

fn to_write(files: &[NewContent]) -> Result<Vec<Change>, SwitchError> {
    let mut changes = Vec::new();
    for file in files {
        let (path, content) = (followed(&file.path)?, file.content()?);
        changes.push(Change { path, content, owner: file.owner });
    }
    changes.retain(|change| fs::read(&change.path).ok().as_ref() != Some(&change.content));
    Ok(changes)
}

impl Change {
    fn check(&self) -> Result<(), SwitchError> {
        durable::check_folder_of(&self.path)?;
        match self.path.exists() && is_immutable(&self.path)? {
            true => Err(SwitchError::Immutable { path: self.path.clone() }),
            false => Ok(()),
        }
    }
}

/// Root may write to any folder, but nobody may rename over a file that has this mark (chattr(1)).
fn is_immutable(path: &Path) -> Result<bool, FileError> {
    let marks = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
    let found = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS).at("look at", path)?;
    Ok(found.stx_attributes.intersects(marks))
}

/// Gives a file this content and access, unless it has them.
fn set(path: &Path, content: &[u8], access: Access) -> Result<(), FileError> {
    let is_set = path.exists() && fs::read(path).at("read", path)? == content && has(path, access)?;
    if is_set {
        durable::settle_folder_of(path);
        return Ok(());
    }
    durable::write(path, content, access)
}

fn has(path: &Path, access: Access) -> Result<bool, FileError> {
    let found = access_of(path)?;
    Ok(found.mode == access.mode && (access.owner.is_none() || access.owner == found.owner))
}

/// Whether the file has its new content already.
pub fn is_switched(file: &NewContent) -> Result<bool, SwitchError> {
    let content = file.content()?;
    Ok(durable::read_if_there(&followed(&file.path)?)? == Some(content))
}

/// The file itself, through all links; one that does not exist yet under the name it was given.
fn followed(path: &Path) -> Result<PathBuf, SwitchError> {
    match fs::canonicalize(path) {
        Ok(path) if path.is_file() => Ok(path),
        Ok(path) => Err(SwitchError::NotAFile { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            Ok(std::path::absolute(path).at("find", path)?)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SwitchError::Dangling { path: path.into() }),
        Err(error) => Err(error).at("follow", path)?,
    }
}

fn access_of(path: &Path) -> Result<Access, FileError> {
    let metadata = fs::metadata(path).at("look at", path)?;
    let owner = Some((metadata.uid(), metadata.gid()));
    Ok(Access { mode: metadata.permissions().mode() & 0o7777, owner })
}

#[cfg(test)]
#[path = "files_test.rs"]
mod tests;

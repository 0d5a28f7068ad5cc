//! Files that change with the release: the new content goes live at the node's own step, and the old one comes back
//! with the old binary.
//!
//! Before the first change the old content is saved under the step's name, with owner, mode and extended attributes, and
//! it is saved once: a step that is repeated after a crash would otherwise save the new content as the old. Both files
//! and sources are opened as `guarded/` does it, on the way back as well: so a file in a folder that its node's user may
//! write to is refused. Which file goes with which release is not known here.

pub mod certificate;
pub mod data_dir;
pub mod durable;
pub mod etcd_config;
pub mod last_words;
pub mod log;
pub mod log_end;
pub mod log_lines;
pub mod replay;
pub mod room;
mod secret_words;
pub mod state_dir;
pub mod whose;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{program::launcher::NotReadable, release::digest::Sha256};
use crate::guarded::{Access, At, Content, FileError, Place};

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
    NotAFile { path: PathBuf },
    /// It is marked as one that nobody may change.
    #[error("{} is immutable (chattr +i) or append-only, so it cannot be replaced", path.display())]
    Immutable { path: PathBuf },
    /// Its node could read what is there, and could not read what would take its place.
    #[error("{} could not be read any more by its node once it is switched", path.display())]
    Closed { path: PathBuf, source: NotReadable },
    #[error("{} is a link to nothing, so it is not known what to replace", path.display())]
    Dangling { path: PathBuf },
    /// It has not been put back.
    #[error("{} was not put back{}", path.display(), saved_in(saved.as_deref()))]
    NotPutBack {
        path: PathBuf,
        /// Where its old content is; `None` where there was no file.
        saved: Option<PathBuf>,
        source: Box<SwitchError>,
    },
    /// An earlier step failed to put it back.
    #[error(
        "{} was not put back by an earlier step: {}, then repeat the command",
        path.display(), match saved {
            Some(saved) => format!("give it the content of {} again", saved.display()),
            None => "remove it".to_owned(),
        }
    )]
    StillSwitched {
        path: PathBuf,
        /// Where its old content is; `None` where there was no file.
        saved: Option<PathBuf>,
    },
    /// What was saved cannot be read.
    #[error("{} does not say what was saved", path.display())]
    BadSaved { path: PathBuf, source: serde_json::Error },
}

fn saved_in(saved: Option<&Path>) -> String {
    saved.map_or(String::new(), |saved| format!(", and its old content is in {}", saved.display()))
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
    /// The last attempt to put it back failed.
    #[serde(default)]
    not_put_back: bool,
}

impl NewContent {
    fn place(&self) -> Result<Place, SwitchError> {
        let place = Place::of(&self.path)?;
        match place.look()? {
            Some(found) if !found.is_file() => Err(SwitchError::NotAFile { path: place.path() }),
            None if place.was_link() => Err(SwitchError::Dangling { path: self.path.clone() }),
            _ => Ok(place),
        }
    }

    /// The new content, and the access that it has where it is the first. The mode of its source would, with the agent
    /// for an owner, keep its node out of a file that is not for all eyes.
    fn read(&self) -> Result<(Vec<u8>, Access), FileError> {
        let found = Place::of(&self.source)?.read_with_access(Content::Believed)?;
        let (content, access) = found.ok_or(Errno::NOENT).at("read", &self.source)?;
        Ok((content, Access { owner: self.owner, attributes: None, ..access }))
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
            let (place, (content, when_new)) = (file.place()?, file.read()?);
            let old = self.save(&place)?;
            set(&place, &content, &old.access.unwrap_or(when_new))?;
        }
        Ok(())
    }

    /// Puts all saved files back, and says which of them it could not. Repeated, it does nothing more; with nothing saved
    /// there is nothing to do.
    ///
    /// A file that still is as it was is not written: what kept it from being switched would keep it from being put
    /// back, and its node down. Nor does a second name do that, which anybody may give to a file of theirs at any moment.
    pub fn put_back(&self) -> Vec<SwitchError> {
        let all = match self.all() {
            Ok(all) => all,
            Err(error) => return vec![error],
        };
        let put_back = all.into_iter().map(|found| {
            let old = found?;
            self.put_one_back(&old).map_err(|error| {
                let saved = old.access.is_some().then(|| self.content_of(&old.path));
                let path = old.path.clone();
                // The next step forward would take it for what is to be forgotten. Where this cannot be written either, the
                // warning is all there is.
                let _ = self.describe(&Old { not_put_back: true, ..old });
                SwitchError::NotPutBack { saved, path, source: Box::new(error) }
            })
        });
        put_back.filter_map(Result::err).collect()
    }

    fn put_one_back(&self, old: &Old) -> Result<(), SwitchError> {
        let place = match Place::of(&old.path) {
            Err(error) if error.is_absent() && old.access.is_none() => return Ok(()),
            place => place?,
        };
        match &old.access {
            Some(access) => {
                let saved = self.content_of(&old.path);
                let content = durable::read_if_there(&saved)?.ok_or(Errno::NOENT).at("read", &saved)?;
                set(&place, &content, access)?;
            }
            None if place.look()?.is_some() => {
                place.remove_if_there()?;
                place.sync()?;
            }
            None => settle(&place),
        }
        Ok(())
    }

    /// Those of a switch's files that have their new content though nothing was saved of them: what was saved is lost.
    pub fn lost(&self, files: &[NewContent]) -> Result<Vec<NewContent>, SwitchError> {
        let mut lost = Vec::new();
        for file in files {
            let place = match file.place() {
                Err(SwitchError::File(error)) if error.is_absent() => continue,
                place => place?,
            };
            if !self.description_of(&place.path()).exists() && is_switched(file)? {
                lost.push(file.clone());
            }
        }
        Ok(lost)
    }

    /// The first of a switch's files that an earlier step failed to put back, and that still is as this switch leaves it:
    /// what was saved is the only copy of what it held before.
    pub fn not_put_back(&self, files: &[NewContent]) -> Result<Option<SwitchError>, SwitchError> {
        for file in files {
            let path = file.place()?.path();
            let Some(old) = self.read(&self.description_of(&path))?.filter(|old| old.not_put_back) else { continue };
            if is_switched(file)? {
                let saved = old.access.is_some().then(|| self.content_of(&path));
                return Ok(Some(SwitchError::StillSwitched { path, saved }));
            }
        }
        Ok(None)
    }

    /// Forgets what was saved: once the step is done, or undone, for good.
    pub fn forget(&self) -> Result<(), SwitchError> {
        Ok(durable::remove_tree(&self.folder)?)
    }

    /// The description is written after the content, so that it vouches for it.
    fn save(&self, place: &Place) -> Result<Old, SwitchError> {
        let path = place.path();
        let description = self.description_of(&path);
        if let Some(old) = self.read(&description)? {
            return Ok(old);
        }
        let (content, access) = place.read_with_access(Content::Anybodys)?.unzip();
        if let Some(content) = content {
            durable::write(&self.content_of(&path), &content, &Access::PRIVATE)?;
        }
        let old = Old { format: 1, path, access, not_put_back: false };
        self.describe(&old)?;
        Ok(old)
    }

    fn describe(&self, old: &Old) -> Result<(), SwitchError> {
        let description = self.description_of(&old.path);
        let json = serde_json::to_vec(old).at("write", &description)?;
        Ok(durable::write(&description, &json, &Access::PRIVATE)?)
    }

    /// Each by itself: one that cannot be read hides no other.
    fn all(&self) -> Result<Vec<Result<Old, SwitchError>>, SwitchError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.at("read", &self.folder)?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry.at("read", &self.folder)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                all.extend(self.read(&path).transpose());
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
        let (place, (content, when_new)) = (file.place()?, file.read()?);
        let found = place.read_with_access(Content::Compared)?;
        set(&place, &content, &found.map_or(when_new, |(_, access)| access))?;
    }
    Ok(())
}

/// Looks, without changing anything, whether the files can be switched. Nothing is asked of the folder of a file that
/// has its new content already.
pub fn check(files: &[NewContent]) -> Result<(), SwitchError> {
    to_write(files)?.iter().try_for_each(|change| change.check())
}

/// Does all of a switch but its last rename, and leaves nothing: to be asked before anything is stopped, since only
/// this finds a full disk, an owner or an attribute that cannot be given, or a file system that refuses.
///
/// `tried` has the node's user try to read the file that is there, if one is, and the one that would take its place; it says
/// why the second one cannot be read, unless the first one could not either.
pub async fn rehearse(
    files: &[NewContent],
    tried: impl AsyncFn(Option<&Path>, &Path) -> Result<(), NotReadable>,
) -> Result<(), SwitchError> {
    for change in to_write(files)? {
        change.check()?;
        let path = change.place.path();
        let rehearsal = change.place.rehearse(&change.content, &change.access)?;
        let tried = tried(change.is_there.then_some(path.as_path()), &rehearsal.path()).await;
        rehearsal.end()?;
        tried.map_err(|source| SwitchError::Closed { path, source })?;
    }
    Ok(())
}

/// A file that a switch would write.
struct Change {
    place: Place,
    is_there: bool,
    content: Vec<u8>,
    access: Access,
}

fn to_write(files: &[NewContent]) -> Result<Vec<Change>, SwitchError> {
    let mut changes = Vec::new();
    for file in files {
        let (place, (content, when_new)) = (file.place()?, file.read()?);
        match place.read_with_access(Content::Anybodys)? {
            Some((found, _)) if found == content => {}
            Some((_, access)) => changes.push(Change { place, is_there: true, content, access }),
            None => changes.push(Change { place, is_there: false, content, access: when_new }),
        }
    }
    Ok(changes)
}

impl Change {
    fn check(&self) -> Result<(), SwitchError> {
        self.place.check_writable()?;
        match self.place.is_immutable()? {
            true => Err(SwitchError::Immutable { path: self.place.path() }),
            false => Ok(()),
        }
    }
}

/// Gives a file this content and access, unless it has them. One that cannot be read, such as one that its owner has let
/// grow, or has a lease on (fcntl(2)), has not: the rename asks nothing of it.
fn set(place: &Place, content: &[u8], access: &Access) -> Result<(), FileError> {
    match place.read_with_access(Content::Compared) {
        Ok(Some((found, has))) if found == content && access.is_met_by(&has) => {
            settle(place);
            Ok(())
        }
        _ => place.write(content, access),
    }
}

/// Makes a name durable that is what it should be already: a folder that takes no change has nothing to lose, and a step
/// that has nothing to do there does not fail by it.
fn settle(place: &Place) {
    let _ = place.sync();
}

/// Whether the file has its new content already. One that cannot be read has another.
pub fn is_switched(file: &NewContent) -> Result<bool, SwitchError> {
    let (content, _) = file.read()?;
    Ok(file.place()?.read(Content::Compared).is_ok_and(|found| found == Some(content)))
}

#[cfg(test)]
#[path = "files_test.rs"]
mod tests;

#[cfg(test)]
#[path = "files_owner_test.rs"]
mod owner_tests;

//! A member's binary and files: made those of one release, and put back.

use std::{fs, os::unix::fs::MetadataExt, path::Path, slice};

use proto::Release;

use super::{
    error::ActError,
    node::{OwnNode, Sides},
};
use crate::{
    host::{
        files::{self, NewContent},
        program::launcher,
    },
    journal::restart::Binary,
    playbook,
};

impl OwnNode {
    /// Makes one side's binary and files its own. Done again it does nothing more.
    pub fn switch(&self, to: Binary) -> Result<(), ActError> {
        self.switch_with(to, |files| files.into_iter().next().map_or(Ok(()), Err))
    }

    /// As [`OwnNode::switch`], for a member that is down and is to be started on this side. A file that is not as it should
    /// be may be its own user's doing, and keeps nothing down (I-10): it is returned as a warning.
    pub fn switch_to_start(&self, to: Binary) -> Result<Vec<ActError>, ActError> {
        self.switch_with(to, Ok)
    }

    /// Its link and its files as they are now: none of them is written in place, so that one that was changed is another.
    pub(super) fn switched(&self) -> Vec<Option<(u64, u64)>> {
        let look = |path: &Path, found: fn(&Path) -> std::io::Result<fs::Metadata>| {
            found(path).ok().map(|found| (found.dev(), found.ino()))
        };
        let files = self.sides.iter().flat_map(|sides| [&sides.old.release, &sides.new.release]);
        let files = files.flat_map(|release| self.files_for(release).unwrap_or_default());
        let link = self.switch.path().map(|link| look(link, |link| fs::symlink_metadata(link)));
        link.into_iter().chain(files.map(|file| look(&file.path, |path| fs::metadata(path)))).collect()
    }

    /// `judge` is given what is wrong with the files.
    fn switch_with<T>(
        &self,
        to: Binary,
        judge: impl FnOnce(Vec<ActError>) -> Result<T, ActError>,
    ) -> Result<T, ActError> {
        let Some(sides) = &self.sides else { return Err(ActError::from("its two binaries are not known")) };
        // The old one is started whatever has become of it: nothing else would be.
        if to == Binary::New {
            self.check_unchanged(to)?;
        }
        let judged = judge(self.switch_files(sides, to))?;
        if let Some(executable) = &sides.side(to).executable {
            self.switch.to(executable)?;
        }
        Ok(judged)
    }

    /// What is wrong with those that could not be switched; the others were.
    fn switch_files(&self, sides: &Sides, to: Binary) -> Vec<ActError> {
        match to {
            Binary::New => match self.files_for(&sides.new.release) {
                Ok(files) => {
                    let switched = files.iter().map(|file| self.saved.switch(slice::from_ref(file)));
                    switched.filter_map(Result::err).map(ActError::from).collect()
                }
                Err(why) => vec![why],
            },
            Binary::Old => {
                let mut wrong: Vec<_> = self.saved.put_back().into_iter().map(ActError::from).collect();
                wrong.extend(self.put_lost_files_back(sides).err());
                wrong
            }
        }
    }

    /// Refuses a step forward from a file that an earlier one failed to put back: what was saved of it would be forgotten.
    pub fn check_put_back(&self, sides: &Sides) -> Result<(), ActError> {
        let files = self.files_for(&sides.new.release)?;
        match self.saved.not_put_back(&files)? {
            Some(source) => Err(ActError::NotPutBack { node: self.node.name.clone(), source }),
            None => Ok(()),
        }
    }

    /// What the playbook has for the old release, in the place of files whose old content is lost.
    fn put_lost_files_back(&self, sides: &Sides) -> Result<(), ActError> {
        let (instead, _) = self.lost_files(sides)?;
        files::install(&instead).map_err(ActError::from)
    }

    /// Refuses the way back of a file whose old content is lost and that the playbook has for the new release only: the
    /// old binary would be started on it.
    pub fn check_way_back(&self, sides: &Sides) -> Result<(), ActError> {
        let (instead, without) = self.lost_files(sides)?;
        files::check(&instead)?;
        let Some(file) = without.first() else { return Ok(()) };
        Err(ActError::from(format!(
            "{}: {} is that of {}, what it held before was lost with the state directory, and no `files` entry is for {}; \
             add one, or put the old file back",
            self.node.name,
            file.path.display(),
            sides.new.release,
            sides.old.release
        )))
    }

    /// The files whose old content is lost: what the playbook has for them at the old release, and those that it has
    /// nothing for.
    fn lost_files(&self, sides: &Sides) -> Result<(Vec<NewContent>, Vec<NewContent>), ActError> {
        let lost = self.saved.lost(&self.files_for(&sides.new.release)?)?;
        let old = self.files_for(&sides.old.release)?;
        let (covered, without): (Vec<_>, Vec<_>) =
            lost.into_iter().partition(|file| old.iter().any(|old| old.path == file.path));
        let is_lost = |old: &NewContent| covered.iter().any(|file| old.path == file.path);
        Ok((old.into_iter().filter(is_lost).collect(), without))
    }

    /// What an earlier run saved of its files is of no use to a new step forward.
    pub fn forget_saved(&self) -> Result<(), ActError> {
        self.saved.forget().map_err(ActError::from)
    }

    /// The files that change with a release.
    pub fn files_for(&self, release: &Release) -> Result<Vec<NewContent>, ActError> {
        let files = self.node.files_for(release)?;
        let owner = self.owner_of_new_files();
        let content = |file: &&playbook::ConditionalFile| {
            let (path, source) = (file.path.clone(), file.source.clone());
            NewContent { path, source, owner }
        };
        Ok(files.iter().map(content).collect())
    }

    fn owner_of_new_files(&self) -> Option<(u32, u32)> {
        match &self.node.runtime {
            playbook::Runtime::Process(process) => launcher::other_user(process.user.as_deref()?),
            playbook::Runtime::Command(_) => None,
            playbook::Runtime::Systemd(_) => self.unit_owner,
        }
    }
}

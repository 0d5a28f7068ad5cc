//! A member's binary and files: made those of one release, and put back.

use std::sync::Arc;

use proto::Release;

use super::node::{OwnNode, Sides, Why, why};
use crate::{
    host::{
        files::{self, NewContent},
        launcher,
    },
    journal::progress::Binary,
    playbook,
};

impl OwnNode {
    /// Makes one side's binary and files its own. Done again it does nothing more.
    pub fn switch(&self, to: Binary) -> Result<(), Why> {
        let Some(sides) = &self.sides else { return Err(Arc::from("its two binaries are not known")) };
        let side = sides.side(to);
        // The old one is started whatever has become of it: nothing else would be.
        if to == Binary::New {
            self.check_unchanged(to)?;
        }
        match to {
            Binary::New => self.saved.switch(&self.files_for(&side.release)?).map_err(|error| why(&error))?,
            Binary::Old => self.put_files_back(sides)?,
        }
        match (&self.link, &side.executable) {
            (Some(link), Some(executable)) => link.switch(executable).map_err(|error| why(&error)),
            _ => Ok(()),
        }
    }

    /// What was saved; and of files whose old content is lost, what the playbook has for the old release.
    fn put_files_back(&self, sides: &Sides) -> Result<(), Why> {
        self.saved.put_back().map_err(|error| why(&error))?;
        let (instead, _) = self.lost_files(sides)?;
        files::install(&instead).map_err(|error| why(&error))
    }

    /// Refuses the way back of a file whose old content is lost and that the playbook has for the new release only: the
    /// old binary would be started on it.
    pub fn check_way_back(&self, sides: &Sides) -> Result<(), Why> {
        let (instead, without) = self.lost_files(sides)?;
        files::check(&instead).map_err(|error| why(&error))?;
        let Some(file) = without.first() else { return Ok(()) };
        Err(Arc::from(format!(
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
    fn lost_files(&self, sides: &Sides) -> Result<(Vec<NewContent>, Vec<NewContent>), Why> {
        let lost = self.saved.lost(&self.files_for(&sides.new.release)?).map_err(|error| why(&error))?;
        let old = self.files_for(&sides.old.release)?;
        let (covered, without): (Vec<_>, Vec<_>) =
            lost.into_iter().partition(|file| old.iter().any(|old| old.path == file.path));
        let is_lost = |old: &NewContent| covered.iter().any(|file| old.path == file.path);
        Ok((old.into_iter().filter(is_lost).collect(), without))
    }

    /// What an earlier run saved of its files is of no use to a new step forward.
    pub fn forget_saved(&self) -> Result<(), Why> {
        self.saved.forget().map_err(|error| why(&error))
    }

    /// The files that change with a release.
    pub fn files_for(&self, release: &Release) -> Result<Vec<NewContent>, Why> {
        let files = self.node.files_for(release).map_err(|error| why(&error))?;
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

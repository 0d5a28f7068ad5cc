//! A playbook that is carried out, or planned: it says which programs run as root, so nobody may change it who could not
//! become root anyway.
//!
//! Trusted are root, the agent's user, the file's owner, whom the operator chose by naming the file, and whoever
//! called sudo(8). Source: `StrictModes` of sshd_config(5), with the sudoer besides.

use std::{env, fs, os::unix::fs::MetadataExt, path::Path};

use crate::{
    event::trouble::Trouble,
    host::program::path_owner::{self, Writers},
    playbook::Playbook,
    words::with_causes,
};

/// Reads a playbook that only those may change who are trusted with it.
///
/// # Errors
/// It is wrong, or others may change it.
pub(super) fn load(path: &Path) -> Result<Playbook, Trouble> {
    let playbook = Playbook::load(path)?;
    let Some(owner) = fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|found| found.uid()) else {
        // A pipe is written by whoever typed the command.
        return Ok(playbook);
    };
    let sudoer = env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    let writers = sudoer.into_iter().fold(Writers::own().and(owner), Writers::and);
    path_owner::check(path, &writers).map_err(|error| {
        Trouble::Unprepared(format!("the playbook says what runs as root: {}", with_causes(&error)))
    })?;
    Ok(playbook)
}

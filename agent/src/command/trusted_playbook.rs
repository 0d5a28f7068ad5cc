//! A playbook that is carried out, or planned: it says which programs run as root, so nobody may change it whom the operator does not
//! trust with that.
//!
//! Trusted are root, the agent's user, whoever called sudo(8), and the file's owner, whom the operator chose by naming the
//! file; where that is somebody else, it is said. Source: `StrictModes` of sshd_config(5), with the sudoer besides.

use std::{env, fs, os::unix::fs::MetadataExt, path::Path};

use crate::{
    event::trouble::Trouble,
    host::{
        process::credentials::Credentials,
        program::path_owner::{self, Writers, user_name},
    },
    playbook::Playbook,
    words::{typed, with_causes},
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
    if let Some(warning) = foreign(path, owner, sudoer, Credentials::own().uid) {
        tracing::warn!("{warning}");
    }
    Ok(playbook)
}

/// What is to be said of a file of somebody else's, whom the operator may not have thought of.
fn foreign(path: &Path, owner: u32, sudoer: Option<u32>, own: u32) -> Option<String> {
    let is_foreign = owner != 0 && owner != own && sudoer != Some(owner);
    is_foreign.then(|| {
        let (path, owner, own) = (path.to_string_lossy(), user_name(owner), user_name(own));
        format!(
            "the playbook {path} belongs to {owner}, who says by it what runs as {own}; where that is not meant: chown {own} {}",
            typed(&path)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_word_it_is_is_said_of_a_file_of_somebody_elses() {
        for (owner, sudoer, own, is_said) in [
            (0, None, 0, false),
            (0, None, 65_534, false),
            (65_534, None, 65_534, false),
            (65_534, Some(65_534), 0, false),
            (65_534, Some(1), 0, true),
            (65_534, None, 0, true),
        ] {
            let said = foreign(Path::new("/x/p.yaml"), owner, sudoer, own);
            assert_eq!(said.is_some(), is_said, "{owner} {sudoer:?} {own}: {said:?}");
        }
        let said = foreign(Path::new("/x/p.yaml"), 65_534, None, 0).unwrap();
        assert!(said.ends_with("what runs as root; where that is not meant: chown root /x/p.yaml"), "{said}");
    }
}

//! Folders, with all that is in them.

use std::{path::Path, process::Command};

use crate::Error;

/// Copies a folder to where none is yet: contents, owners, rights, times, links as they are.
///
/// # Errors
/// There is something already, or it cannot be copied.
pub fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    if to.exists() {
        return Err(format!("{} is there already", to.display()).into());
    }
    let done = Command::new("cp").args(["--archive", "--reflink=auto", "--"]).args([from, to]).output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("cp: {}", String::from_utf8_lossy(&done.stderr).trim()).into()),
    }
}

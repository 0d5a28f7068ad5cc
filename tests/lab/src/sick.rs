//! Executables of a release that is not well: they say that they are it, and then fail in a chosen way.
//!
//! Each is the program `sick-member` with an order behind its last byte, so that it is an ELF file of its own
//! and an artifact like any other. It runs the real one where it is to serve for a while.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    system::{Build, System},
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Illness {
    /// It ends at once, with exit code 1.
    Exits,
    /// It neither serves nor ends, but by a signal.
    Hangs,
    /// It serves for so many milliseconds, then it dies.
    Dies(u64),
    /// It serves until there is this file, then it dies.
    DiesOnceThereIs(PathBuf),
}

/// What stands behind the program's last byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Of which system it says that it is, for `--version`.
    pub system: System,
    pub version: String,
    pub real: PathBuf,
    pub illness: Illness,
}

const MARK: &[u8] = b"\nsick-member: ";

/// Makes such an executable of a release, `file`; `program` is `sick-member` itself.
///
/// # Errors
/// A file cannot be read or written.
pub fn make(program: &Path, build: &Build, illness: Illness, file: &Path) -> Result<PathBuf, Error> {
    let order = Order { system: build.system, version: build.release.to_string(), real: build.executable(), illness };
    fs::copy(program, file)?;
    let mut end = File::options().append(true).open(file)?;
    end.write_all(MARK)?;
    end.write_all(&serde_json::to_vec(&order)?)?;
    Ok(file.into())
}

impl Order {
    /// The order in this executable.
    ///
    /// # Errors
    /// It has none.
    pub fn of(executable: &Path) -> Result<Self, Error> {
        let bytes = fs::read(executable)?;
        // The mark itself is among the program's own constants, so the last one counts.
        let at = bytes.windows(MARK.len()).rposition(|window| window == MARK).ok_or("no order")?;
        Ok(serde_json::from_slice(&bytes[at + MARK.len()..])?)
    }
}

//! The playbook: what an operator wrote, read strictly, before anything is touched.
//!
//! `source -> tree -> parse -> check -> Playbook`: `tree` knows YAML's syntax, `fields` the types and keys of
//! one value, `parse` each key's meaning and default, `check` which values are impossible together. Every
//! refusal names file, line and column. Not in this room: whether paths exist, hosts answer, or the cluster
//! allows it; that is preflight's and the planner's.

pub mod cluster;
pub mod draft;
pub mod fault;
pub mod model;
pub mod reference;
pub mod release;
pub mod select;
pub mod template;
pub mod unit;
pub mod window;

pub mod fields;
pub mod parse;
pub mod secret;
pub mod tree;

mod check;

use std::path::{self, Path, PathBuf};

pub use crate::sha256::Sha256;
pub use check::POLLS;
pub use cluster::{Auth, Cluster, Tls};
pub use fault::{Mistake, Place, PlaybookError};
pub use model::{
    Backup, Command, ConditionalArgs, ConditionalFile, Finalize, Gates, Hooks, Kind, Node, OnFailure, Order, Playbook,
    Process, Restore, Runtime, Stop, Strategy, Verify,
};
pub use release::{Artifact, Hop, Hops, Source};
pub use select::Clash;
pub use template::{Context, TemplateError, expand, expand_all};
pub use window::Window;

use crate::regular_file::{self, ReadError};
use fault::Fault;
use tree::Tree;

/// The largest file that is read, in bytes; a playbook has a few thousand.
const LARGEST: usize = 1 << 20;
/// What is expected of the file as a whole.
const HEAD: &str = "a playbook, which begins with `apiVersion: baton/v1`";

impl Playbook {
    /// Reads the playbook in the file `path`.
    ///
    /// # Errors
    /// [`PlaybookError`] with the whole text for a person.
    pub fn load(path: &Path) -> Result<Self, PlaybookError> {
        Self::parse(&text(path, HEAD)?, path)
    }

    /// Reads the playbook `source`, which was in `file`: relative paths start at that file's folder.
    ///
    /// # Errors
    /// [`PlaybookError`] with the whole text for a person.
    pub fn parse(source: &str, file: &Path) -> Result<Self, PlaybookError> {
        read(source, &folder(file)).map_err(|fault| fault.in_source(file, source))
    }
}

/// The text of a file that is read strictly; `expected` is what it should be.
pub fn text(path: &Path, expected: &'static str) -> Result<String, PlaybookError> {
    let bytes = regular_file::read(path, LARGEST).map_err(|error| match error {
        ReadError::TooLarge(_) => {
            Fault::of_file("the file is larger than 1 MiB", format!("{expected}, and has a few thousand bytes"))
                .in_source(path, "")
        }
        source => PlaybookError::Unreadable { file: path.into(), source, expected },
    })?;
    String::from_utf8(bytes)
        .map_err(|error| not_text(&error.as_bytes()[..error.utf8_error().valid_up_to()], error.as_bytes(), path))
}

fn read(source: &str, folder: &Path) -> Result<Playbook, Fault> {
    let tree = Tree::read(source, HEAD)?;
    let playbook = parse::playbook(&tree, folder)?;
    match check::check(&playbook) {
        Ok(()) => Ok(playbook),
        Err(misfit) => Err(Fault::new(tree.place_of(&misfit.path), misfit.problem, misfit.expected)),
    }
}

/// The folder of `file`, absolute where the current folder can be told.
pub fn folder(file: &Path) -> PathBuf {
    let file = path::absolute(file).unwrap_or_else(|_| file.into());
    file.parent().unwrap_or(Path::new("/")).into()
}

fn not_text(before: &[u8], bytes: &[u8], file: &Path) -> PlaybookError {
    let before = String::from_utf8_lossy(before);
    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
    let place = Place { line: before.matches('\n').count() + 1, column, width: 1 };
    let problem = format!("the byte 0x{:02x} is not UTF-8", bytes[before.len()]);
    Fault::new(place, problem, "text in UTF-8").in_source(file, &String::from_utf8_lossy(bytes))
}

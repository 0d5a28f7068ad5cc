//! A node that was told to stop serves on until it has ended, and may end at any moment. Whoever takes it for a healthy
//! one lets the next member go down beside it (I-1). So it is written down, in the folder of nodes, which process was told,
//! and stands there until that process has ended.
//!
//! Written by the agent, once before the process is told and once after: an agent may be killed in between. Then the process
//! is only waited for, and after that counts as one that never heard of it. systemd remembers its stops itself.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::launch::node_file;
use crate::host::{
    durable::{self, Access, At, FileError},
    process_id::ProcessId,
};

const FORMAT: u32 = 1;

/// What is on file of a node's stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    format: u32,
    /// The process; `None` where a supervisor's `status` does not say which it is.
    pub process: Option<ProcessId>,
    /// Whether that is known of the process itself, and not only by a supervisor's word: else it is never killed.
    pub is_shown: bool,
    /// Whether it was told; else it was about to be.
    pub is_told: bool,
}

/// The place of it, for one node.
#[derive(Clone, Debug)]
pub struct ToldFile(PathBuf);

impl Told {
    /// That this process is about to be told.
    pub fn about(process: Option<ProcessId>, is_shown: bool) -> Self {
        Self { format: FORMAT, process, is_shown, is_told: false }
    }

    /// That it was.
    pub fn told(self) -> Self {
        Self { is_told: true, ..self }
    }
}

impl ToldFile {
    /// For this node; `nodes` is the state directory's folder of nodes.
    pub fn of(nodes: &Path, name: &str) -> Self {
        Self(node_file(nodes, name, "told"))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Before the process is told. A state directory that takes nothing any more is no reason to leave a failed binary
    /// running: then only the agent itself remembers.
    pub(super) fn announce(&self, about: &Told) {
        let _ = self.write(about);
    }

    /// After it. What cannot be written now stays announced.
    pub(super) fn is_told(&self, about: &Told) {
        let _ = self.write(&about.clone().told());
    }

    fn write(&self, told: &Told) -> Result<(), FileError> {
        let json = serde_json::to_vec(told).at("write", &self.0)?;
        durable::write(&self.0, &json, &Access::PRIVATE)
    }

    /// What is on file; nothing where that cannot be understood: a damaged file keeps no node down (I-10).
    pub fn read(&self) -> Option<Told> {
        let told: Told = serde_json::from_slice(&durable::read_if_there(&self.0).ok()??).ok()?;
        (told.format == FORMAT).then_some(told)
    }

    /// As the two writes leave it.
    #[cfg(test)]
    pub(crate) fn put(&self, told: &Told) {
        self.write(told).unwrap();
    }

    /// Once it has ended. A file that stays is about a dead process.
    pub fn forget(&self) {
        let _ = durable::remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_remembered_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let file = ToldFile::of(folder.path(), "m1");
        assert_eq!(file.read(), None);
        let own = Told::about(Some(ProcessId::own().unwrap()), true);
        file.announce(&own);
        assert_eq!(file.read().as_ref(), Some(&own));
        file.is_told(&own);
        assert_eq!(file.read(), Some(own.told()));
        for damaged in ["", "{}", "[1]", r#"{"format":2,"process":null,"is_shown":true,"is_told":true}"#] {
            std::fs::write(file.path(), damaged).unwrap();
            assert_eq!(file.read(), None, "{damaged}");
        }
        file.forget();
        file.forget();
        assert!(!file.path().exists());
    }
}

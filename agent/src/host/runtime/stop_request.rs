//! A node that was told to stop serves on until it has ended, and may end at any moment. Whoever takes it for a healthy
//! one lets the next member go down beside it (I-1). So it is written down, in the folder of nodes, which process was told,
//! and stands there until that process has ended.
//!
//! Written by the agent right before the process is told. An agent that is killed in between leaves one that has not heard of
//! it: nobody can tell, so that one counts as told, too. systemd remembers its stops itself.
//!
//! A process that was told counts neither as running nor as stopped. It is waited for as long as a stop may take. If it still
//! runs then, its record stands, no other member goes, and the agent says what to type. It is not killed: a kill belongs to a
//! stop, before which the cluster was looked at. Where nothing shows the process, only its `status` command ends this: by
//! saying that it has stopped, or by naming another process. The model checker has such members. Without this rule it finds two
//! members down.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::launch::node_file;
use crate::host::{
    files::durable::{self, Access, At, FileError},
    process::process_id::ProcessId,
};

const FORMAT: u32 = 1;

/// What is on file of a node's stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequest {
    format: u32,
    /// The agent that told it: nothing of an earlier boot still runs.
    by: ProcessId,
    /// The process; `None` where a supervisor's `status` does not say which it is.
    pub process: Option<ProcessId>,
    /// Whether that is known of the process itself, and not only by a supervisor's word.
    pub is_shown: bool,
}

/// The place of it, for one node.
#[derive(Clone, Debug)]
pub struct StopRequestFile(PathBuf);

impl StopRequest {
    /// That this agent tells this process.
    ///
    /// # Errors
    /// Of `/proc`.
    pub fn now(process: Option<ProcessId>, is_shown: bool) -> std::io::Result<Self> {
        Ok(Self { format: FORMAT, by: ProcessId::own()?, process, is_shown })
    }

    /// Whether it was before the last boot.
    pub fn is_of_another_boot(&self) -> bool {
        ProcessId::own().is_ok_and(|own| own.boot_id != self.by.boot_id)
    }
}

impl StopRequestFile {
    /// For this node; `nodes` is the state directory's folder of nodes.
    pub fn of(nodes: &Path, name: &str) -> Self {
        Self(node_file(nodes, name, "stop-requested"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Before the process is told.
    ///
    /// # Errors
    /// It could not be written: then only the agent itself can remember.
    pub fn write(&self, told: &StopRequest) -> Result<(), FileError> {
        let json = serde_json::to_vec(told).at("write", &self.0)?;
        durable::write(&self.0, &json, &Access::PRIVATE)
    }

    /// What is on file; nothing where that cannot be understood: a damaged file keeps no node down (I-10).
    pub fn read(&self) -> Option<StopRequest> {
        let told: StopRequest = serde_json::from_slice(&durable::read_if_there(&self.0).ok()??).ok()?;
        (told.format == FORMAT).then_some(told)
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
        let file = StopRequestFile::of(folder.path(), "m1");
        assert_eq!(file.read(), None);
        let own = ProcessId::own().unwrap();
        let told = StopRequest::now(Some(own), true).unwrap();
        assert!(!told.is_of_another_boot());
        file.write(&told).unwrap();
        assert_eq!(file.read().as_ref(), Some(&told));
        let by = ProcessId { boot_id: own.boot_id + 1, ..own };
        assert!(StopRequest { by, ..told.clone() }.is_of_another_boot());
        file.write(&StopRequest { format: 2, ..told }).unwrap();
        assert_eq!(file.read(), None);
        for damaged in ["", "{}", "[1]"] {
            std::fs::write(file.path(), damaged).unwrap();
            assert_eq!(file.read(), None, "{damaged}");
        }
        file.forget();
        file.forget();
        assert!(!file.path().exists());
    }
}

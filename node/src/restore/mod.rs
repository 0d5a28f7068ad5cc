//! `node snapshot`: what a saved file holds, and a data directory of a new cluster made from it.
//!
//! A new cluster has the keys, leases and history of the file, its cluster version and its alarms. It has none of the old members,
//! nothing of their gate, and no downgrade that was under way. Every member of it is restored by itself, from the same file.
//! Source: etcd, etcdutl/snapshot/v3_snapshot.go.

mod command;
mod data_dir;
mod file;
mod status;

pub use command::{Command, SnapshotCommandError, usage};
pub use data_dir::{RestoreError, Restored, Restoring, restore};
pub use file::{FileError, HashCheck, Saved, read};
pub use status::{Format, Status};

#[cfg(test)]
#[path = "restore_test.rs"]
mod tests;

//! A member's data directory, looked at while the member runs: whether a start on another release would fail there.
//!
//! It belongs to the member's user, so what is in it is hostile input: bounded, and never shown. Source: etcd's WAL
//! (`server/storage/wal`, files of 64 MB), its snapshots (`server/etcdserver/api/snap`).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use prost::Message;
use proto::ClusterVersion;
use serde_json::Value;

use crate::regular_file;

/// What etcd's next WAL file takes, in bytes.
const WAL_FILE: u64 = 64 * 1000 * 1000;
/// A snapshot that is read is smaller, in bytes: since 3.5 it holds little but the members.
const MAX_SNAPSHOT: usize = 64 << 20;

/// Where a member keeps its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDir {
    pub data: PathBuf,
    /// Its WAL, where that lies elsewhere.
    pub wal: Option<PathBuf>,
}

/// Too little is free where a member writes its next files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} MB are free where its data lies, and its next files take {} MB; make room before it is stopped", .free / 1_000_000, .wanted.div_ceil(1_000_000))]
pub struct NoRoom {
    /// In bytes, as all below.
    pub free: u64,
    pub wanted: u64,
}

/// What the newest snapshot of an etcd member holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// The data directory is not etcd's.
    NotEtcd,
    /// There is none: the member would replay its log from its first entry.
    Missing,
    /// The cluster version in it.
    Holds(ClusterVersion),
    /// It cannot be understood.
    Unknown,
}

impl DataDir {
    /// Refuses a start that would meet a full disk. A file system that does not say how much is free says nothing.
    ///
    /// # Errors
    /// [`NoRoom`]
    pub fn check_room(&self) -> Result<(), NoRoom> {
        let snapshot = newest_snapshot(&self.data).ok().flatten().and_then(|path| fs::metadata(path).ok());
        let snapshot = snapshot.map_or(0, |metadata| metadata.len());
        let wal = self.wal.as_ref().unwrap_or(&self.data);
        judge_room(free(wal), WAL_FILE)?;
        judge_room(free(&self.data), if self.wal.is_some() { snapshot } else { WAL_FILE + snapshot })
    }

    /// What its newest snapshot holds.
    ///
    /// # Errors
    /// The folder, or the snapshot, cannot be read.
    pub fn snapshot(&self) -> io::Result<Snapshot> {
        fs::read_dir(&self.data)?;
        if !self.data.join("member/snap/db").exists() {
            return Ok(Snapshot::NotEtcd);
        }
        let Some(path) = newest_snapshot(&self.data)? else { return Ok(Snapshot::Missing) };
        let bytes = regular_file::read(&path, MAX_SNAPSHOT)?;
        Ok(version_in(&bytes).map_or(Snapshot::Unknown, Snapshot::Holds))
    }
}

fn judge_room(free: Option<u64>, wanted: u64) -> Result<(), NoRoom> {
    match free {
        Some(free) if free < wanted => Err(NoRoom { free, wanted }),
        _ => Ok(()),
    }
}

/// What a user without privileges may still take there.
fn free(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    found.f_bavail.checked_mul(found.f_frsize)
}

/// Their names begin with term and index in hexadecimal digits of equal number.
fn newest_snapshot(data: &Path) -> io::Result<Option<PathBuf>> {
    let mut newest = None;
    for entry in fs::read_dir(data.join("member/snap"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "snap") {
            newest = newest.max(Some(path));
        }
    }
    Ok(newest)
}

/// `snappb.Snapshot`: a checksum, and a `raftpb.Snapshot`.
#[derive(Clone, PartialEq, Message)]
struct Checked {
    #[prost(bytes = "vec", optional, tag = "2")]
    data: Option<Vec<u8>>,
}

/// `raftpb.Snapshot`: the v2 store as JSON, and where it stands in the log.
#[derive(Clone, PartialEq, Message)]
struct OfRaft {
    #[prost(bytes = "vec", optional, tag = "1")]
    data: Option<Vec<u8>>,
}

/// The cluster version that a snapshot holds, at `/0/version` of its v2 store.
fn version_in(snapshot: &[u8]) -> Option<ClusterVersion> {
    let checked = Checked::decode(snapshot).ok()?;
    let of_raft = OfRaft::decode(&*checked.data?).ok()?;
    let store: Value = serde_json::from_slice(&of_raft.data?).ok()?;
    let version = store.pointer("/Root/Children/0/Children/version/Value")?.as_str()?;
    let release: proto::Release = version.parse().ok()?;
    Some(release.cluster_version())
}

#[cfg(test)]
#[path = "data_dir_test.rs"]
mod tests;

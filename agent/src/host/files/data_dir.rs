//! A member's data directory, looked at while the member runs: whether a start on another release would fail there.
//!
//! It belongs to the member's user, so what is in it is hostile input: bounded, and never shown. Source: etcd's WAL
//! (`server/storage/wal`, files of 64 MB), its snapshots (`server/etcdserver/api/snap`).

use std::{
    fs::{self, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use prost::Message;
use proto::ClusterVersion;
use rustix::fs::OFlags;
use serde_json::Value;

use super::room;
use crate::regular_file;

/// What etcd's next WAL file takes, in bytes.
const WAL_FILE: u64 = 64 * 1000 * 1000;
/// More of a log is not read through, in bytes.
const MAX_WAL: u64 = 2 << 30;
/// How a v2 request begins behind its number: `etcdserverpb.Request` with the method PUT and a path. Up to 3.5 members write
/// the cluster version and themselves so; 3.6 does not, and 3.7 cannot read it.
const V2_REQUEST: &[u8] = b"\x12\x03PUT\x1a";
/// Where such a path begins: a user's keys in the v2 store, which 3.5 still has, lie elsewhere, and matter as little.
const OF_THE_CLUSTER: &[u8] = b"/0/";
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
        judge_room(room::free(wal).ok(), WAL_FILE)?;
        judge_room(room::free(&self.data).ok(), if self.wal.is_some() { snapshot } else { WAL_FILE + snapshot })
    }

    /// Whether its log has entries that 3.5 or an older release wrote; `None` where it is too long to be read through.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn has_old_entries(&self) -> io::Result<Option<bool>> {
        let mut left = MAX_WAL;
        for entry in fs::read_dir(self.wal.clone().unwrap_or_else(|| self.data.join("member/wal")))? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "wal") {
                continue;
            }
            let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&path)?;
            let length = file.metadata()?.len();
            if !file.metadata()?.is_file() || length > left {
                return Ok(None);
            }
            left -= length;
            if holds_old_entry(file.take(length))? {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// What its newest snapshot holds.
    ///
    /// # Errors
    /// The folder, or the snapshot, cannot be read.
    pub fn snapshot(&self) -> io::Result<Snapshot> {
        fs::read_dir(&self.data)?;
        // One that may not be looked into is not known to be another's.
        if !self.data.join("member/snap/db").try_exists()? {
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

fn holds_old_entry(mut log: impl Read) -> io::Result<bool> {
    // The begin of a path, and the byte before it that says how long it is.
    const LONGEST: usize = V2_REQUEST.len() + 1 + OF_THE_CLUSTER.len();
    let mut bytes = vec![0; 1 << 20];
    let mut kept = 0;
    loop {
        let read = log.read(&mut bytes[kept..])?;
        if read == 0 {
            return Ok(false);
        }
        let seen = &bytes[..kept + read];
        let is_old = |window: &[u8]| window.starts_with(V2_REQUEST) && window.ends_with(OF_THE_CLUSTER);
        if seen.windows(LONGEST).any(is_old) {
            return Ok(true);
        }
        let from = seen.len().saturating_sub(LONGEST - 1);
        kept = seen.len() - from;
        bytes.copy_within(from..from + kept, 0);
    }
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

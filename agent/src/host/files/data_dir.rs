//! A member's data directory, looked at while the member runs: whether a start on another release would fail there.
//!
//! It belongs to the member's user, so what is in it is hostile input: bounded, and never shown. Snapshots and log are read in `replay/`.
//! Source: etcd's WAL (`server/storage/wal`, files of 64 MB), its snapshots (`server/etcdserver/api/snap`).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use proto::ClusterVersion;

use super::{
    replay::{self, Replayed, Unread},
    room,
};
use crate::regular_file;

/// What etcd's next WAL file takes, in bytes.
const WAL_FILE: u64 = 64 * 1000 * 1000;

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

    /// How large its database is and how much is free, in bytes, where it could not take in another one beside it: a member that missed
    /// too much is sent a whole database (raft paper, section 7).
    pub fn lacks_room_for_another(&self) -> Option<(u64, u64)> {
        let database = fs::metadata(self.data.join("member/snap/db")).ok()?.len();
        let free = room::free(&self.data).ok()?;
        (free < database).then_some((database, free))
    }

    /// Whether its log has entries that 3.5 or an older release wrote; `None` where it is too long to be read through.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn has_old_entries(&self) -> io::Result<Option<bool>> {
        match replay::has_v2_requests(&self.log()) {
            Ok(has_some) => Ok(Some(has_some)),
            Err(Unread::TooLong) => Ok(None),
            Err(Unread::File(error)) => Err(error),
            Err(other) => Err(io::Error::new(io::ErrorKind::InvalidData, other)),
        }
    }

    /// Whether its log has such entries behind its newest snapshot: 3.6 may take one in the middle of a log that it reads back. `None` where
    /// it is too long.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn has_old_entries_behind(&self) -> io::Result<Option<bool>> {
        match self.replayed() {
            Ok(replayed) => Ok(Some(replayed.is_some_and(|replayed| replayed.has_old))),
            Err(Unread::TooLong) => Ok(None),
            Err(Unread::File(error)) => Err(error),
            Err(other) => Err(io::Error::new(io::ErrorKind::InvalidData, other)),
        }
    }

    /// What a start would read back; `None` where the directory is not etcd's.
    ///
    /// # Errors
    /// [`Unread`]
    pub fn replayed(&self) -> Result<Option<Replayed>, Unread> {
        fs::read_dir(&self.data)?;
        let snapshots = self.data.join("member/snap");
        match snapshots.try_exists()? {
            true => replay::replayed(&snapshots, &self.log()).map(Some),
            false => Ok(None),
        }
    }

    /// Whether a member of etcd has begun here, and there is no database of v3, as of one that nobody has started on 3.x.
    ///
    /// # Errors
    /// It may not be looked into.
    pub fn has_no_database(&self) -> io::Result<bool> {
        fs::read_dir(&self.data)?;
        Ok(self.data.join("member/snap").try_exists()? && !self.data.join("member/snap/db").try_exists()?)
    }

    /// The folder of its write-ahead log.
    pub fn log(&self) -> PathBuf {
        self.wal.clone().unwrap_or_else(|| self.data.join("member/wal"))
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
        let bytes = regular_file::read(&path, replay::MAX_SNAPSHOT)?;
        let store = replay::Snapshot::read(&bytes).and_then(|read| read.store);
        Ok(store.and_then(|store| store.version).map_or(Snapshot::Unknown, Snapshot::Holds))
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

#[cfg(test)]
#[path = "data_dir_test.rs"]
mod tests;

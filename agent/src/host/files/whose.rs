//! Whose data a directory holds, and how it is put aside.
//!
//! The directory belongs to the member's user, so what is in it is hostile input: bounded, and never shown. Sources: etcd's WAL
//! (`server/storage/wal`: each file begins with a checksum and the ids of cluster and member); the bundled node's file `identity`.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use prost::Message;
use proto::{ClusterId, MemberId};
use rustix::{fs::OFlags, io::Errno};

use crate::{calendar::rfc3339, regular_file};

/// Of a log as much is read: the ids stand in its first hundred bytes.
const HEAD: u64 = 4096;
/// The types of records at the beginning of a file of the log (etcd, `walpb`).
const METADATA: i64 = 1;
const CHECKSUM: i64 = 4;

/// What is found in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// No member has begun there.
    Nobody,
    /// A database, and no log, without which no member goes on. The log may lie elsewhere.
    NoLog,
    Member {
        cluster: ClusterId,
        member: MemberId,
    },
    /// Something is there that is not understood.
    Unknown(String),
}

/// `walpb.Record`, without its checksum.
#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(int64, optional, tag = "1")]
    kind: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "3")]
    data: Option<Vec<u8>>,
}

/// `etcdserverpb.Metadata`
#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(uint64, optional, tag = "1")]
    member: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    cluster: Option<u64>,
}

/// The beginning of the bundled node's `identity`.
#[derive(Clone, PartialEq, Message)]
struct Identity {
    #[prost(uint64, tag = "2")]
    cluster: u64,
    #[prost(uint64, tag = "3")]
    member: u64,
}

/// Whose data this directory holds, with the log in that one.
pub fn whose(data: &Path, log: &Path) -> Whose {
    match identity(data).and_then(|found| if found.is_some() { Ok(found) } else { of_log(log) }) {
        Ok(Some((member, cluster))) => Whose::Member { cluster: ClusterId(cluster), member: MemberId(member) },
        Ok(None) => rest(data),
        Err(why) => Whose::Unknown(why.to_string()),
    }
}

/// Without a log and without an identity there is no member; files beside them may be of one whose log lies elsewhere.
fn rest(data: &Path) -> Whose {
    let has_more = |name: &str| data.join(name).exists();
    match has_more("member/snap/db") || has_more("snap") || has_more("wal") {
        true => Whose::NoLog,
        false => Whose::Nobody,
    }
}

fn identity(data: &Path) -> io::Result<Option<(u64, u64)>> {
    let path = data.join("identity");
    if !path.try_exists()? {
        return Ok(None);
    }
    let bytes = regular_file::read(&path, HEAD as usize)?;
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "its `identity` is not what a node writes");
    let found = Identity::decode(&*bytes).map_err(|_| damaged())?;
    if found.member == 0 { Err(damaged()) } else { Ok(Some((found.member, found.cluster))) }
}

fn of_log(folder: &Path) -> io::Result<Option<(u64, u64)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    let mut first: Option<PathBuf> = None;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wal") && first.as_ref().is_none_or(|one| path < *one)
        {
            first = Some(path);
        }
    }
    let Some(path) = first else { return Ok(None) };
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.take(HEAD).read_to_end(&mut bytes)?;
    }
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "its log does not begin as etcd's does");
    ids(&bytes).map(Some).ok_or_else(damaged)
}

/// Whose log this folder has, where it is understood.
pub fn member_of_log(folder: &Path) -> Option<MemberId> {
    of_log(folder).ok().flatten().map(|(member, _)| MemberId(member))
}

/// Whether something lies in this folder that is no file of a log. etcd deletes whatever is there when it makes a log anew (`wal.Create`).
/// What cannot be read may.
pub fn has_more_than_a_log(folder: &Path) -> bool {
    let is_of_a_log = |entry: io::Result<fs::DirEntry>| {
        let Ok(entry) = entry else { return false };
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_kept = name == "lost+found" || name.starts_with("archived-");
        is_kept || [".wal", ".tmp", ".broken"].iter().any(|end| name.ends_with(end))
    };
    match fs::read_dir(folder) {
        Ok(entries) => !entries.into_iter().all(is_of_a_log),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Whether anything lies in this folder. What cannot be read may.
pub fn has_entries(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Each record has its length before it, and in the highest byte of that how much it is padded (etcd, `wal/decoder.go`).
fn ids(mut log: &[u8]) -> Option<(u64, u64)> {
    loop {
        let (head, rest) = log.split_first_chunk::<8>()?;
        let head = u64::from_le_bytes(*head);
        let length = usize::try_from(head & 0x00ff_ffff_ffff_ffff).ok()?;
        let padding = if head >> 63 == 1 { (head >> 56) as usize & 0x7 } else { 0 };
        let record = Record::decode(rest.get(..length)?).ok()?;
        match record.kind {
            Some(CHECKSUM) => log = rest.get(length + padding..)?,
            Some(METADATA) => {
                let found = Metadata::decode(&*record.data?).ok()?;
                return found.member.zip(found.cluster).filter(|(member, _)| *member != 0);
            }
            _ => return None,
        }
    }
}

/// Puts what is in this directory aside, beside it, or within it where it is a mount. Nothing is deleted. Gives where it is now.
///
/// # Errors
/// The system's.
pub fn put_aside(data: &Path, member: Option<MemberId>) -> io::Result<PathBuf> {
    let time: String = rfc3339(SystemTime::now()).chars().filter(char::is_ascii_alphanumeric).collect();
    let whose = member.map_or_else(|| "unknown".to_owned(), |member| member.to_string());
    let suffix = format!("archived-{whose}-{time}");
    let (Some(parent), Some(name)) = (data.parent(), data.file_name()) else {
        return Err(io::Error::other("the data directory has no folder that it lies in"));
    };
    let aside = parent.join(format!("{}.{suffix}", name.to_string_lossy()));
    match rustix::fs::renameat_with(rustix::fs::CWD, data, rustix::fs::CWD, &aside, rustix::fs::RenameFlags::NOREPLACE)
    {
        Ok(()) => {
            fs::File::open(parent)?.sync_all()?;
            Ok(aside)
        }
        Err(Errno::BUSY | Errno::XDEV) => put_aside_within(data, &suffix),
        Err(error) => Err(error.into()),
    }
}

fn put_aside_within(data: &Path, suffix: &str) -> io::Result<PathBuf> {
    let aside = data.join(suffix);
    fs::create_dir(&aside)?;
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_kept = name == "lost+found" || name.to_string_lossy().starts_with("archived-");
        if !is_kept {
            fs::rename(entry.path(), aside.join(&name))?;
        }
    }
    fs::File::open(&aside)?.sync_all()?;
    fs::File::open(data)?.sync_all()?;
    Ok(aside)
}

#[cfg(test)]
#[path = "whose_test.rs"]
mod tests;

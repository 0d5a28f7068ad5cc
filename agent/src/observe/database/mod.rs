//! The database of one member, as it sends it itself (`Maintenance.Snapshot`): spooled to a file that has no name, read, and gone.
//!
//! What is sent may be a liar's: no more is taken than the member said that it has, and some; the checksum behind it must be right.
//! Source: etcd v3.6.14, `server/etcdserver/api/v3rpc/maintenance.go`, `Snapshot`.

pub mod bbolt;
pub mod content;
pub mod origin;

use std::{
    io,
    path::Path,
    sync::atomic::{AtomicU8, Ordering::Relaxed},
    time::Duration,
};

use proto::{
    MemberId, Revision,
    etcdserverpb::{SnapshotRequest, maintenance_client::MaintenanceClient},
};
use sha2::{Digest, Sha256};
use tokio::{
    io::AsyncWriteExt as _,
    time::{Instant, timeout, timeout_at},
};
use tonic::{Request, Streaming};

use self::content::{Content, NotUnderstood};
use super::{
    Observer,
    access::CALL,
    directory::Listed,
    error::CallError,
    member::{another, whose},
    view::Role,
};
use crate::words::with_causes;

/// How much longer than the member said the stream may be, in bytes: it writes meanwhile, and the checksum comes last.
const MARGIN: u64 = 16 * 1024 * 1024;
/// How long the next [`PART`] may take. The member's disk is read for it, which a backup or another's read may slow.
const PATIENCE: Duration = Duration::from_secs(30);
/// In bytes. Whoever sends less in that time would be heard for days.
const PART: u64 = 1024 * 1024;
/// The SHA-256 of all before it comes last.
const CHECKSUM: usize = 32;
/// How often members and database are read until no change of the members came in between.
const TRIES: usize = 3;

/// What one member says of the members, and what its database has of the cluster, at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub listed: Vec<Listed>,
    pub content: Content,
}

/// A database that was written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// How long the file is, its checksum included.
    pub bytes: u64,
    /// The revision of its last write; `None` where it is another program's, or has none.
    pub revision: Option<Revision>,
    /// Of all but the checksum itself, which is this.
    pub sha256: crate::sha256::Sha256,
}

/// Why the two could not be had.
#[derive(Debug, thiserror::Error)]
pub enum NotTold {
    #[error("it was not reached")]
    NotReached,
    #[error("{0}")]
    Call(#[from] CallError),
    #[error("it may send {wanted} bytes, and {folder} has room for {free}; make room there")]
    NoRoom { folder: String, wanted: u64, free: u64 },
    #[error("it cannot be kept in {folder}: {error}")]
    File { folder: String, error: String },
    #[error("its members are not known: {0}")]
    List(String),
    #[error("it sent more than the {0} bytes that it said it has")]
    TooLong(u64),
    #[error("it sends its database too slowly: less than {PART} bytes in {} s", PATIENCE.as_secs())]
    TooSlow,
    #[error("what it sent is torn, or its checksum is wrong")]
    Torn,
    #[error("its database is not understood: {0}")]
    NotUnderstood(#[from] NotUnderstood),
    #[error("its members changed while its database was read, {TRIES} times")]
    Changing,
}

impl Observer {
    /// Reads list and database of a member at the address where a look found it. `folder` has the file meanwhile; `free` is how many
    /// bytes may be written there.
    ///
    /// # Errors
    /// [`NotTold`].
    pub async fn database(&self, member: MemberId, folder: &Path, free: u64) -> Result<Told, NotTold> {
        let address = self.connections.address_of(member).ok_or(NotTold::NotReached)?;
        let mut listed = self.listed_for(member, &address).await?;
        for _ in 0..TRIES {
            let content = self.content(member, &address, (folder, free)).await?;
            let after = self.listed_for(member, &address).await?;
            if after == listed {
                return Ok(Told { listed, content });
            }
            listed = after;
        }
        Err(NotTold::Changing)
    }

    /// As the member lists them itself; a learner lists nobody, and so the others do.
    async fn listed_for(&self, member: MemberId, address: &str) -> Result<Vec<Listed>, NotTold> {
        let access = &self.connections.access;
        let is_learner = |one: &Listed| one.id == member && one.role == Role::Learner;
        match access.directory().members().iter().any(is_learner) {
            true => self.members().await.map_err(|error| NotTold::List(with_causes(&error))),
            false => Ok(access.members(address).await?),
        }
    }

    /// Writes the database of a member into this file, with its checksum behind it, as `etcdctl snapshot save` does; durable when this
    /// returns. `folder` is where it lies. That of etcd must be one. `percent` says meanwhile how much is had.
    ///
    /// # Errors
    /// [`NotTold`].
    pub async fn save_database(
        &self,
        member: MemberId,
        file: std::fs::File,
        (folder, free): (&Path, u64),
        (is_etcd, percent): (bool, &AtomicU8),
    ) -> Result<Saved, NotTold> {
        let address = self.connections.address_of(member).ok_or(NotTold::NotReached)?;
        let failed = |error: io::Error| NotTold::File { folder: shown(folder), error: with_causes(&error) };
        let said = self.has_room(member, &address, (folder, free)).await?;
        let mut file = tokio::fs::File::from_std(file);
        let checksum = self.spool(member, &address, (said, percent), &mut file).await?.map_err(failed)?;
        let checksum: [u8; CHECKSUM] = checksum.try_into().map_err(|_| NotTold::Torn)?;
        let written = async {
            file.write_all(&checksum).await?;
            file.flush().await?;
            file.sync_all().await?;
            file.metadata().await
        };
        let bytes = written.await.map_err(failed)?.len();
        let file = file.into_std().await;
        let read = tokio::task::spawn_blocking(move || -> Result<_, NotTold> {
            let again = file.try_clone().map_err(|error| NotUnderstood::from(bbolt::Unread::from(error)))?;
            // With a right checksum it may be anything.
            match is_etcd {
                true => Content::read(again).map(|_| content::revision(file)).map_err(NotTold::from),
                false => Ok(None),
            }
        });
        let revision = read.await.map_err(|error| failed(io::Error::other(error)))??;
        Ok(Saved { bytes, revision, sha256: crate::sha256::Sha256(checksum) })
    }

    /// How much it says that it has, where that much may be written.
    async fn has_room(&self, member: MemberId, address: &str, (folder, free): (&Path, u64)) -> Result<u64, NotTold> {
        let said = self.connections.access.status_of(member, address).await?.status.db_size;
        let said = u64::try_from(said).unwrap_or_default();
        let wanted = room_for(said);
        match free < wanted {
            true => Err(NotTold::NoRoom { folder: shown(folder), wanted, free }),
            false => Ok(said),
        }
    }

    async fn content(&self, member: MemberId, address: &str, (folder, free): (&Path, u64)) -> Result<Content, NotTold> {
        let said = self.has_room(member, address, (folder, free)).await?;
        let failed = |error: io::Error| NotTold::File { folder: shown(folder), error: with_causes(&error) };
        let mut file = tokio::fs::File::from_std(tempfile::tempfile_in(folder).map_err(failed)?);
        self.spool(member, address, (said, &AtomicU8::new(0)), &mut file).await?.map_err(failed)?;
        let file = file.into_std().await;
        let content = tokio::task::spawn_blocking(move || Content::read(file)).await;
        Ok(content.map_err(|error| failed(io::Error::other(error)))??)
    }

    /// Takes the stream to its end, and gives the checksum behind it, which is right. The inner error is the file's.
    async fn spool(
        &self,
        member: MemberId,
        address: &str,
        (said, percent): (u64, &AtomicU8),
        file: &mut tokio::fs::File,
    ) -> Result<io::Result<Vec<u8>>, NotTold> {
        let mut parts = self.snapshot(address).await?;
        let (mut bytes, mut received) = (0, Received::default());
        let (mut expected, mut deadline) = (PART, Instant::now() + PATIENCE);
        loop {
            let part = timeout_at(deadline, parts.message()).await.map_err(|_| NotTold::TooSlow)?;
            let Some(part) = part.map_err(CallError::from)? else { break };
            // Some releases name nobody in it; the address has just proved whose it is.
            if let Some((id, _)) = whose(part.header.as_ref()).filter(|(id, _)| *id != member) {
                return Err(another(address, id).into());
            }
            if let Some(cluster) = self.connections.access.directory().foreign(part.header.as_ref()) {
                return Err(CallError::Foreign(cluster).into());
            }
            bytes += part.blob.len() as u64;
            if bytes > said.saturating_add(MARGIN) {
                return Err(NotTold::TooLong(said));
            }
            percent.store((bytes.saturating_mul(100) / said.max(1)).min(100) as u8, Relaxed);
            if bytes >= expected {
                (expected, deadline) = (bytes + PART, Instant::now() + PATIENCE);
            }
            if let Err(error) = file.write_all(&received.take(&part.blob)).await {
                return Ok(Err(error));
            }
        }
        if !received.is_whole() {
            return Err(NotTold::Torn);
        }
        Ok(file.flush().await.map(|()| received.last))
    }

    async fn snapshot(&self, address: &str) -> Result<Streaming<proto::etcdserverpb::SnapshotResponse>, CallError> {
        let (line, token) = self.connections.access.entry(address).await?;
        let mut request = Request::new(SnapshotRequest {});
        if let Some(token) = token {
            request.metadata_mut().insert("token", token);
        }
        let mut client = MaintenanceClient::new(line.channel.clone());
        let answer = timeout(CALL, client.snapshot(request)).await.map_err(|_| CallError::TimedOut(CALL))?;
        Ok(answer?.into_inner())
    }
}

/// How many bytes must be free where a member's database is to lie, of which it says that it has so many.
pub fn room_for(said: u64) -> u64 {
    said.saturating_add(MARGIN)
}

fn shown(folder: &Path) -> String {
    folder.display().to_string()
}

/// A stream as it comes.
#[derive(Debug, Default)]
struct Received {
    digest: Sha256,
    /// Its last bytes so far, which may be the checksum.
    last: Vec<u8>,
}

impl Received {
    /// The next part; gives what belongs to the file for sure.
    fn take(&mut self, part: &[u8]) -> Vec<u8> {
        self.last.extend_from_slice(part);
        let sure: Vec<_> = self.last.drain(..self.last.len().saturating_sub(CHECKSUM)).collect();
        self.digest.update(&sure);
        sure
    }

    fn is_whole(&self) -> bool {
        self.digest.clone().finalize()[..] == self.last[..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_whole_with_its_checksum_alone() {
        let content = [7; 1000];
        let whole = [&content[..], &Sha256::digest(content)].concat();
        for length in [1, 31, 32, 33, 500, 2000] {
            let (mut received, mut file) = (Received::default(), Vec::new());
            whole.chunks(length).for_each(|part| file.extend(received.take(part)));
            assert!(received.is_whole(), "in parts of {length}");
            assert_eq!(file, content);
        }
        for wrong in [&whole[..1031], &whole[1..], &[], &[&whole[..], &[0]].concat()] {
            let mut received = Received::default();
            received.take(wrong);
            assert!(!received.is_whole());
        }
    }
}

//! What a start of an etcd member reads back: its newest snapshot, and its log behind that.
//!
//! It is read while the member runs and writes it, and it belongs to the member's user: so what is in it is hostile input, bounded, and never
//! shown. Nothing is judged here. Source: etcd v3.6.14, `server/etcdserver/bootstrap.go` (`recoverSnapshot`) and `server/storage/wal/wal.go`.

mod entry;
mod folder;
mod records;
mod snapshot;

use std::{
    io::{self, Read as _},
    path::Path,
    time::Duration,
};

use prost::Message;

pub(super) use self::snapshot::Snapshot;
use self::{
    entry::{Asks, Entry},
    folder::Folder,
    records::{Kind, Records},
    snapshot::Position,
};

/// A snapshot that is read is smaller, in bytes: since 3.5 it holds little but the members.
pub(super) const MAX_SNAPSHOT: usize = 64 << 20;
/// More of a log is not read, in bytes.
const MAX_LOG: u64 = 2 << 30;
/// How many snapshots are looked at until one counts: etcd keeps five, and writes a new one.
const MAX_SNAPSHOTS: usize = 8;
/// How often it is read until nothing was being written, or deleted, at that very moment.
const TRIES: usize = 4;
const TRY_INTERVAL: Duration = Duration::from_millis(100);

/// What stands in it that a newer etcd does not take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Keys or users of the v2 API are in the snapshot.
    pub has_content: bool,
    /// What users asked by the v2 API is in the log behind it.
    pub has_requests: bool,
    /// What 3.5 or an older release wrote is in the log behind it, whoever asked for it.
    pub has_old: bool,
}

/// Why that is not known.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    #[error("it cannot be read: {0}")]
    File(#[from] io::Error),
    #[error("its log is damaged")]
    Damaged,
    #[error("its log is too long to be read through")]
    TooLong,
    #[error("its newest snapshot cannot be understood")]
    NotUnderstood,
}

/// `raftpb.HardState`, of which one field counts here.
#[derive(Clone, PartialEq, Message)]
struct State {
    #[prost(uint64, optional, tag = "3")]
    commit: Option<u64>,
}

/// `walpb.Snapshot`
#[derive(Clone, PartialEq, Message)]
struct Taken {
    #[prost(uint64, optional, tag = "1")]
    index: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    term: Option<u64>,
}

/// The lowest indices of what was asked in a log by the v2 API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Requests {
    of_the_cluster: Option<u64>,
    of_users: Option<u64>,
}

impl Requests {
    fn behind(self, has_content: bool) -> Replayed {
        let has_requests = self.of_users.is_some();
        Replayed { has_content, has_requests, has_old: has_requests || self.of_the_cluster.is_some() }
    }

    /// An entry takes the place of all from its index on: a leader of a later term writes over what was never committed (raft paper, figure 7).
    fn take(&mut self, index: u64, asks: Asks) {
        for (lowest, is_asked) in
            [(&mut self.of_the_cluster, asks == Asks::OfTheCluster), (&mut self.of_users, asks == Asks::OfUsers)]
        {
            *lowest = lowest.filter(|lowest| *lowest < index).or(is_asked.then_some(index));
        }
    }
}

/// What a start on the snapshots in the first folder and the log in the second reads back.
///
/// # Errors
/// [`Unread`]
pub fn replayed(snapshots: &Path, log: &Path) -> Result<Replayed, Unread> {
    again(|| replayed_once(snapshots, log))
}

/// The same, whether or not a file was being written, or deleted, at that very moment.
///
/// # Errors
/// [`Unread`]
pub fn replayed_once(snapshots: &Path, log: &Path) -> Result<Replayed, Unread> {
    let (snapshots, log) = (Folder::open(snapshots)?, Folder::open(log)?);
    let mut left = MAX_LOG;
    let mut newest_first = snapshots.names(".snap")?;
    newest_first.reverse();
    for name in newest_first.iter().take(MAX_SNAPSHOTS) {
        let Some(snapshot) = Snapshot::read(&content(&snapshots, name)?) else { continue };
        // One that the log does not know yet counts for no start.
        let Some(requests) = behind(&log, snapshot.at, &mut left)? else { continue };
        let store = snapshot.store.ok_or(Unread::NotUnderstood)?;
        return Ok(requests.behind(store.has_content));
    }
    if newest_first.len() > MAX_SNAPSHOTS {
        return Err(Unread::NotUnderstood);
    }
    let requests = behind(&log, Position::default(), &mut left)?.ok_or(Unread::Damaged)?;
    Ok(requests.behind(false))
}

/// Whether anything in the log, as far as there are files of it, was asked by the v2 API.
///
/// # Errors
/// [`Unread`]
pub fn has_v2_requests(log: &Path) -> Result<bool, Unread> {
    again(|| {
        let log = Folder::open(log)?;
        let names = log.names(".wal")?;
        let (requests, _) = read(&log, &names, Position::default(), &mut { MAX_LOG })?;
        Ok(requests.of_the_cluster.or(requests.of_users).is_some())
    })
}

fn again<T>(read: impl Fn() -> Result<T, Unread>) -> Result<T, Unread> {
    let passes = |error: &Unread| match error {
        Unread::Damaged => true,
        // Old files are deleted once a snapshot was taken.
        Unread::File(error) => error.kind() == io::ErrorKind::NotFound,
        Unread::TooLong | Unread::NotUnderstood => false,
    };
    for _ in 1..TRIES {
        match read() {
            Err(error) if passes(&error) => std::thread::sleep(TRY_INTERVAL),
            read => return read,
        }
    }
    read()
}

fn content(snapshots: &Folder, name: &str) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    snapshots.file(name)?.take(MAX_SNAPSHOT as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_SNAPSHOT { Err(Unread::NotUnderstood) } else { Ok(bytes) }
}

/// What was asked behind a snapshot; `None` where the log has no such snapshot, or does not say that what it holds was agreed on.
fn behind(log: &Folder, snapshot: Position, left: &mut u64) -> Result<Option<Requests>, Unread> {
    let names = log.names(".wal")?;
    let (requests, is_known) = read(log, files_from(&names, snapshot.index)?, snapshot, left)?;
    Ok(is_known.then_some(requests))
}

fn read(log: &Folder, names: &[String], snapshot: Position, left: &mut u64) -> Result<(Requests, bool), Unread> {
    let mut records = Records::of(log, names, left);
    let (mut requests, mut is_taken, mut commit) = (Requests::default(), false, 0);
    while let Some((kind, data)) = records.next()? {
        match kind {
            Kind::Entry => {
                let entry = Entry::decode(&*data).map_err(|_| Unread::Damaged)?;
                let index = entry.index.unwrap_or_default();
                if index > snapshot.index {
                    requests.take(index, entry.asks().ok_or(Unread::Damaged)?);
                }
            }
            Kind::Snapshot => {
                let taken = Taken::decode(&*data).map_err(|_| Unread::Damaged)?;
                let at = Position { index: taken.index.unwrap_or_default(), term: taken.term.unwrap_or_default() };
                is_taken |= at == snapshot;
            }
            Kind::State => commit = State::decode(&*data).map_err(|_| Unread::Damaged)?.commit.unwrap_or_default(),
            Kind::Metadata | Kind::Checksum => {}
        }
    }
    Ok((requests, is_taken && commit >= snapshot.index))
}

/// The files that a start opens for a snapshot: from the last one on that begins no later than behind it.
fn files_from(names: &[String], index: u64) -> Result<&[String], Unread> {
    let from = names.iter().rposition(|name| numbers(name).is_some_and(|(_, begins)| begins <= index));
    let names = from.and_then(|from| names.get(from..)).ok_or(Unread::Damaged)?;
    let is_next = |pair: &[String]| match [&pair[0], &pair[1]].map(|name| numbers(name)) {
        [Some((one, _)), Some((other, _))] => one.checked_add(1) == Some(other),
        _ => false,
    };
    if names.windows(2).all(is_next) { Ok(names) } else { Err(Unread::Damaged) }
}

/// `SEQUENCE-INDEX.wal`, both in 16 hexadecimal digits: the how manieth it is, and the index that its first entry may have.
fn numbers(name: &str) -> Option<(u64, u64)> {
    let (sequence, index) = name.strip_suffix(".wal")?.split_once('-')?;
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16);
    Some((number(sequence)?, number(index)?))
}

#[cfg(test)]
#[path = "replay_test.rs"]
mod tests;

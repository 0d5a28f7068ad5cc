//! What a step asks of a member's data directory before its stop: room for the next files, and for etcd 3.7 a snapshot
//! that 3.6 wrote.

use std::io;

use proto::{ClusterVersion, Release};

use super::node::OwnNode;
use crate::host::{
    blocking::blocking,
    files::data_dir::{DataDir, NoRoom, Snapshot},
    process::{
        member_setting::{default_data_folder, member_folder},
        process_id::family,
    },
    runtime::{RuntimeError, Status},
};

/// The first etcd that cannot read the log entries of 3.5 and older: a member without a snapshot replays them, and panics.
const READS_NO_OLD_LOG: ClusterVersion = ClusterVersion { major: 3, minor: 7 };
/// Who wrote a snapshot as etcd needs it then.
pub(super) const WRITES_SNAPSHOT: ClusterVersion = ClusterVersion { major: 3, minor: 6 };

/// Why a member would not start on the new release.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// It could not be looked for, as its process could not.
    #[error(transparent)]
    Process(#[from] Box<RuntimeError>),
    #[error("{node}: too little room")]
    NoRoom { node: String, source: NoRoom },
    /// Its log has what the new release cannot read.
    #[error(
        "{node}: its data directory has no snapshot of version {WRITES_SNAPSHOT}, and without one etcd {new} panics on what an \
         older release wrote into its log; etcd {old} takes one after as many entries as its `--snapshot-count` says"
    )]
    OldLog { node: String, old: ClusterVersion, new: ClusterVersion },
}

/// What was found in it.
struct Found {
    room: Result<(), NoRoom>,
    /// Its database and what is free, in bytes, where that is less.
    lacks_room: Option<(u64, u64)>,
    snapshot: io::Result<Snapshot>,
    has_old_entries: io::Result<Option<bool>>,
}

impl OwnNode {
    /// Refuses a data directory on which the new release would not start; gives what is to be known all the same.
    ///
    /// # Errors
    /// What is wrong there, and what to do first.
    pub(super) async fn check_data_dir(&self, old: &Release, new: &Release) -> Result<Vec<String>, DataDirError> {
        let status = match &self.runtime {
            Some(runtime) => runtime.peek().await.map_err(Box::new)?,
            None => Status::Stopped,
        };
        if !status.is_running() {
            return Ok(Vec::new());
        }
        let pid = status.process().map(|process| process.identity.pid);
        let (old, new) = (old.cluster_version(), new.cluster_version());
        let needs_snapshot = old < READS_NO_OLD_LOG && new >= READS_NO_OLD_LOG;
        let found = blocking(move || {
            let data = data_dir(pid?)?;
            let snapshot = data.snapshot();
            // A log is long, and only who replays it cares.
            let has_old_entries = match snapshot {
                Ok(Snapshot::Holds(version)) if needs_snapshot && version >= WRITES_SNAPSHOT => {
                    data.has_old_entries_behind()
                }
                Ok(Snapshot::Missing | Snapshot::Holds(_)) if needs_snapshot => data.has_old_entries(),
                _ => Ok(Some(false)),
            };
            let lacks_room = data.lacks_room_for_another();
            Some(Found { room: data.check_room(), lacks_room, snapshot, has_old_entries })
        });
        let name = &self.node.name;
        let Some(found) = found.await else {
            return Ok(vec![format!("{name}: {}", not_known(pid, needs_snapshot.then_some(new)))]);
        };
        found.room.map_err(|source| DataDirError::NoRoom { node: name.clone(), source })?;
        let mut warnings: Vec<_> =
            found.lacks_room.map(|(database, free)| short_of_room(name, database, free)).into_iter().collect();
        if !needs_snapshot {
            let unread = found.snapshot.err();
            warnings.extend(unread.map(|error| {
                format!("{name}: its data directory cannot be read ({error}), so how large its next snapshot is is not known")
            }));
            return Ok(warnings);
        }
        match replay(&found.snapshot, &found.has_old_entries) {
            Replay::Readable => {}
            Replay::Unknown(why) => warnings.push(format!("{name}: {}", unknown(&why, new))),
            Replay::Panics => return Err(DataDirError::OldLog { node: name.clone(), old, new }),
        }
        Ok(warnings)
    }
}

impl OwnNode {
    /// Whether etcd 3.7 replays nothing that is older than 3.6: its newest snapshot is one that 3.6 wrote, and nothing older is behind it.
    pub(super) async fn has_new_snapshot(&self) -> bool {
        let status = match &self.runtime {
            Some(runtime) => runtime.peek().await.ok(),
            None => None,
        };
        let Some(pid) = status.and_then(|status| Some(status.process()?.identity.pid)) else { return false };
        blocking(move || {
            let Some(data) = data_dir(pid) else { return false };
            let is_new = matches!(data.snapshot(), Ok(Snapshot::Holds(version)) if version >= WRITES_SNAPSHOT);
            is_new && matches!(data.has_old_entries_behind(), Ok(Some(false)))
        })
        .await
    }
}

/// That of the process, or of one that it has started: as it was told, or where etcd has it untold.
pub(super) fn data_dir(pid: u32) -> Option<DataDir> {
    let family = family(pid).unwrap_or_else(|_| vec![pid]);
    let told = family.iter().find_map(|pid| Some((*pid, member_folder(*pid, "data-dir")?)));
    let untold = || family.iter().find_map(|pid| Some((*pid, default_data_folder(*pid)?)));
    let (pid, data) = told.or_else(untold)?;
    Some(DataDir { data, wal: member_folder(pid, "wal-dir") })
}

/// What is to be known of a disk that has no room for another database.
fn short_of_room(name: &str, database: u64, free: u64) -> String {
    format!(
        "{name}: {} MB are free where its data lies, and its database has {} MB: it could not take in a snapshot, should it miss too much \
         while it is down",
        free / 1_000_000,
        database.div_ceil(1_000_000)
    )
}

/// What is to be known where nobody knows where it lies.
fn not_known(pid: Option<u32>, needs_snapshot: Option<ClusterVersion>) -> String {
    let why = match pid {
        Some(pid) => format!("its data directory is not known (pid {pid} was not told one, and has no NAME.etcd)"),
        None => "its data directory is not known, as its process is not".to_owned(),
    };
    match needs_snapshot {
        Some(new) => unknown(&why, new),
        None => format!("{why}, so it was not looked whether there is room for its next files"),
    }
}

/// What a start on [`READS_NO_OLD_LOG`] would meet in the log.
#[derive(Debug, PartialEq, Eq)]
enum Replay {
    Readable,
    Panics,
    Unknown(String),
}

fn replay(snapshot: &io::Result<Snapshot>, has_old_entries: &io::Result<Option<bool>>) -> Replay {
    match (snapshot, has_old_entries) {
        (Ok(Snapshot::NotEtcd), _) => Replay::Readable,
        (Ok(Snapshot::Unknown), _) => Replay::Unknown("its newest snapshot cannot be understood".into()),
        (Err(error), _) => Replay::Unknown(format!("its data directory cannot be read ({error})")),
        (Ok(Snapshot::Missing | Snapshot::Holds(_)), Ok(Some(true))) => Replay::Panics,
        (Ok(Snapshot::Missing | Snapshot::Holds(_)), Ok(Some(false))) => Replay::Readable,
        (Ok(Snapshot::Missing | Snapshot::Holds(_)), Ok(None)) => {
            Replay::Unknown("its log is too long to be read through".into())
        }
        (Ok(Snapshot::Missing | Snapshot::Holds(_)), Err(error)) => {
            Replay::Unknown(format!("its log cannot be read ({error})"))
        }
    }
}

fn unknown(why: &str, new: ClusterVersion) -> String {
    format!(
        "{why}, so it is not known whether {new} can read its log: an etcd member without a snapshot of {WRITES_SNAPSHOT} \
         panics there"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_that_nobody_knows_is_no_silence() {
        let version = ClusterVersion { major: 3, minor: 7 };
        for (pid, needed, words) in [
            (
                Some(7),
                None,
                "pid 7 was not told one, and has no NAME.etcd), so it was not looked whether there is room",
            ),
            (None, None, "as its process is not, so it was not looked whether there is room"),
            (None, Some(version), "as its process is not, so it is not known whether 3.7 can read its log"),
        ] {
            assert!(not_known(pid, needed).contains(words), "{}", not_known(pid, needed));
        }
    }

    #[test]
    fn only_a_log_of_old_that_would_be_replayed_is_refused() {
        let version = |minor| ClusterVersion { major: 3, minor };
        let (denied, old, new) = (io::ErrorKind::PermissionDenied, Some(true), Some(false));
        let is_unknown = |replay: &Replay| matches!(replay, Replay::Unknown(_));
        for (snapshot, entries, expected) in [
            (Snapshot::Missing, old, Replay::Panics),
            (Snapshot::Holds(version(5)), old, Replay::Panics),
            // A cluster that began on 3.6 has no snapshot, and needs none.
            (Snapshot::Missing, new, Replay::Readable),
            (Snapshot::Holds(version(5)), new, Replay::Readable),
            // In the middle of the log, as 3.6 takes one while it reads back a long one.
            (Snapshot::Holds(version(6)), old, Replay::Panics),
            (Snapshot::Holds(version(6)), new, Replay::Readable),
            (Snapshot::NotEtcd, old, Replay::Readable),
        ] {
            assert_eq!(replay(&Ok(snapshot), &Ok(entries)), expected, "{snapshot:?} {entries:?}");
        }
        assert!(is_unknown(&replay(&Ok(Snapshot::Unknown), &Ok(old))));
        assert!(is_unknown(&replay(&Ok(Snapshot::Missing), &Ok(None))));
        assert!(is_unknown(&replay(&Ok(Snapshot::Missing), &Err(denied.into()))));
        assert!(is_unknown(&replay(&Err(denied.into()), &Ok(old))));
    }
}

//! What a step asks of a member's data directory before its stop: room for the next files, and for etcd 3.7 a snapshot
//! that 3.6 wrote.

use proto::{ClusterVersion, Release};

use super::{error::ActError, node::OwnNode};
use crate::host::{
    blocking::blocking,
    files::data_dir::{DataDir, NoRoom, Snapshot},
    process::{member_setting::member_folder, process_id::family},
};

/// The first etcd that cannot read the log entries of 3.5 and older: a member without a snapshot replays them, and panics.
const READS_NO_OLD_LOG: ClusterVersion = ClusterVersion { major: 3, minor: 7 };
/// Who wrote a snapshot as etcd needs it then.
const WRITES_SNAPSHOT: ClusterVersion = ClusterVersion { major: 3, minor: 6 };

/// What was found in it.
struct Found {
    room: Result<(), NoRoom>,
    snapshot: std::io::Result<Snapshot>,
    has_old_entries: std::io::Result<Option<bool>>,
}

impl OwnNode {
    /// Refuses a data directory on which the new release would not start; gives what is to be known all the same.
    ///
    /// # Errors
    /// What is wrong there, and what to do first.
    pub(super) async fn check_data_dir(&self, old: &Release, new: &Release) -> Result<Option<String>, ActError> {
        let Some(pid) = self.peek().await?.process().map(|process| process.identity.pid) else { return Ok(None) };
        let (old, new) = (old.cluster_version(), new.cluster_version());
        let needs_snapshot = old < READS_NO_OLD_LOG && new >= READS_NO_OLD_LOG;
        let found = blocking(move || {
            let data = family(pid).unwrap_or_else(|_| vec![pid]).into_iter().find_map(|pid| {
                let data = member_folder(pid, "data-dir")?;
                Some(DataDir { data, wal: member_folder(pid, "wal-dir") })
            })?;
            let snapshot = data.snapshot();
            // A log is long, and only who replays it cares.
            let is_replayed = needs_snapshot && matches!(snapshot, Ok(Snapshot::Missing | Snapshot::Holds(_)));
            let has_old_entries = if is_replayed { data.has_old_entries() } else { Ok(Some(false)) };
            Some(Found { room: data.check_room(), snapshot, has_old_entries })
        });
        let name = &self.node.name;
        let unknown = |why: &str| {
            format!(
                "{name}: {why}, so it is not known whether {new} can read its log: an etcd member without a snapshot of \
                 {WRITES_SNAPSHOT} panics there"
            )
        };
        let Some(found) = found.await else {
            return Ok(needs_snapshot.then(|| unknown("its data directory is not known")));
        };
        found.room.map_err(|no_room| format!("{name}: {no_room}"))?;
        match found.snapshot {
            _ if !needs_snapshot => Ok(None),
            Ok(Snapshot::NotEtcd) => Ok(None),
            Ok(Snapshot::Holds(version)) if version >= WRITES_SNAPSHOT => Ok(None),
            Ok(Snapshot::Missing | Snapshot::Holds(_)) => match found.has_old_entries {
            Ok(Some(false)) => Ok(None),
            Ok(None) => Ok(Some(unknown("its log is too long to be read through"))),
            Err(error) => Ok(Some(unknown(&format!("its log cannot be read ({error})")))),
            Ok(Some(true)) => Err(format!(
                "{name}: its data directory has no snapshot of version {WRITES_SNAPSHOT}, and without one etcd {new} panics on \
                 what an older release wrote into its log; restart it once on {old} first, by a playbook of `kind: Restart`"
            )
            .into()),
            },
            Ok(Snapshot::Unknown) => Ok(Some(unknown("its newest snapshot cannot be understood"))),
            Err(error) => Ok(Some(unknown(&format!("its data directory cannot be read ({error})")))),
        }
    }
}

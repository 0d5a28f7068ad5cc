//! A member of a group whose state is nothing, for tests.

use std::{
    io::{self, BufRead},
    path::Path,
    sync::Arc,
    time::Duration,
};

use wal::{Options, Wal};

use crate::{Applier, Content, Frozen, Group, Machine, Peers, ReadMode, Restored, Settings, Snapshots, Stop};

pub(crate) const SETTINGS: Settings = Settings {
    heartbeat: Duration::from_millis(100),
    election: Duration::from_secs(1),
    snapshot_count: 1000,
    catchup_entries: 1000,
    reads: ReadMode::Quorum,
};

struct Nothing;

impl Machine for Nothing {
    fn apply(&self, _: &[(u64, Content)]) -> Result<(), Stop> {
        Ok(())
    }

    fn freeze(&self) -> Frozen {
        Box::new(|_: &mut dyn io::Write| Ok(()))
    }

    fn read_state(self: Arc<Self>, _: &mut dyn BufRead) -> Result<Restored, Stop> {
        Ok(Box::new(|| Ok(())))
    }
}

/// Member 1, with what lies in this folder.
pub(crate) async fn member(folder: &Path, settings: Settings, others: Arc<dyn Peers>) -> Group {
    let wal = Wal::open(&folder.join("wal"), Options::default()).unwrap();
    let snapshots = Snapshots::open(disk::real(&folder.join("snap")).unwrap()).unwrap();
    let applier = Applier::open(Arc::new(Nothing), snapshots).unwrap();
    let group = Group::open(1, settings, wal, applier, others).await.unwrap();
    group.may_stand(true);
    group
}

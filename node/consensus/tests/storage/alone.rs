//! A group of one member, which leads.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use consensus::{
    Applier, Group, Lane, Outgoing, Peer, PeerError, Peers, Pipe, Question, ReadMode, Settings, Snapshots,
};
use futures_util::future::{BoxFuture, pending};
use tempfile::TempDir;
use wal::{Options, Wal};

use crate::notebook::Notebook;

pub const ID: u64 = 7;

pub struct Alone {
    pub group: Group,
    pub notebook: Arc<Notebook>,
    /// In which it leads.
    pub term: u64,
    _folder: TempDir,
}

impl Alone {
    pub async fn begin() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let wal = Wal::open(&folder.path().join("wal"), Options::default()).unwrap();
        let snapshots = Snapshots::open(disk::real(&folder.path().join("snap")).unwrap()).unwrap();
        let notebook = Arc::new(Notebook::default());
        let applier = Applier::open(notebook.clone(), snapshots).unwrap();
        let settings = Settings {
            heartbeat: Duration::from_millis(50),
            election: Duration::from_millis(500),
            snapshot_count: 1000,
            catchup_entries: 1000,
            reads: ReadMode::Quorum,
        };
        let group = Group::open(ID, settings, wal, applier, Arc::new(Nobody)).await.unwrap();
        group.may_stand(true);
        group.found(&BTreeMap::from([(ID, "http://127.0.0.1:1".to_owned())])).await.unwrap();
        let mut status = group.raft_status();
        let term = status.wait_for(|status| status.leader == Some(ID)).await.unwrap().term;
        Self { group, notebook, term, _folder: folder }
    }
}

/// A group of one calls nobody.
struct Nobody;

impl Peers for Nobody {
    fn pipe(&self, _: Peer, _: Lane) -> BoxFuture<'static, Result<Pipe, PeerError>> {
        Box::pin(pending())
    }

    fn ask(&self, _: Peer, _: Question, _: Duration) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        Box::pin(pending())
    }

    fn send_snapshot(&self, _: Peer, _: Outgoing) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        Box::pin(pending())
    }
}

//! openraft's conformance suite over the real log and real snapshots, each case in a folder of its own.

use std::sync::Arc;

use consensus::{Applier, LogStore, Snapshots, Types};
use openraft::{
    StorageError,
    testing::log::{StoreBuilder, Suite},
};
use tempfile::TempDir;
use wal::{Options, Wal};

use crate::notebook::Notebook;

struct Folders;

impl StoreBuilder<Types, LogStore, Applier, TempDir> for Folders {
    async fn build(&self) -> Result<(TempDir, LogStore, Applier), StorageError<Types>> {
        let folder = tempfile::tempdir().unwrap();
        let wal = Wal::open(&folder.path().join("wal"), Options::default()).unwrap();
        let snapshots = Snapshots::open(disk::real(&folder.path().join("snap")).unwrap()).unwrap();
        let applier = Applier::open(Arc::new(Notebook::default()), snapshots).unwrap();
        Ok((folder, LogStore::new(wal), applier))
    }
}

#[tokio::test]
async fn openrafts_suite_passes() {
    Suite::test_all(Folders).await.unwrap();
}

//! Stored snapshots: their bytes, what is found after a crash, and what is refused.

use std::{fs, path::Path, sync::Arc};

use bytes::Bytes;
use consensus::{Applier, Content, Machine, Snapshots};
use openraft::storage::{RaftSnapshotBuilder, RaftStateMachine};
use tempfile::TempDir;

use crate::notebook::Notebook;

fn notebook(lines: &[&'static str]) -> Arc<Notebook> {
    let notebook = Notebook::default();
    let entries: Vec<_> = lines.iter().map(|line| (0, Content::Command(Bytes::from_static(line.as_bytes())))).collect();
    notebook.apply(&entries).unwrap();
    Arc::new(notebook)
}

fn open(folder: &Path, notebook: &Arc<Notebook>) -> Result<Applier, String> {
    let snapshots = Snapshots::open(disk::real(folder).unwrap()).map_err(|error| error.to_string())?;
    Applier::open(notebook.clone(), snapshots).map_err(|error| error.to_string())
}

/// A folder with one snapshot of these lines.
async fn stored(lines: &[&'static str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut applier = open(folder.path(), &notebook(lines)).unwrap();
    applier.build_snapshot().await.unwrap();
    folder
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const ONLY: &str = "0000000000000000-0000000000000000.snap";

/// What was written once is read by every later release. Never written anew: another meaning is another field.
#[tokio::test]
async fn the_bytes_are_those_of_the_release_that_first_wrote_them() {
    let folder = stored(&["one", "two"]).await;
    let golden = include_bytes!("../golden/snapshot-1.snap");
    assert!(fs::read(folder.path().join(ONLY)).unwrap() == golden, "the format has changed");
}

#[tokio::test]
async fn a_member_starts_from_its_newest_snapshot_and_clears_what_was_half_written() {
    let folder = stored(&["one", "two"]).await;
    fs::write(folder.path().join("7.tmp"), "half").unwrap();
    let again = notebook(&["to be replaced"]);
    let mut applier = open(folder.path(), &again).unwrap();
    assert_eq!(again.lines(), ["one", "two"]);
    assert_eq!(files(folder.path()), [ONLY]);
    assert!(applier.get_current_snapshot().await.unwrap().is_some());
}

#[tokio::test]
async fn what_is_damaged_or_newer_is_refused_by_name() {
    let folder = stored(&["one"]).await;
    let path = folder.path().join(ONLY);
    let whole = fs::read(&path).unwrap();
    let refusal = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        open(folder.path(), &notebook(&[])).err().unwrap_or_default()
    };
    let head = usize::from(whole[0]);
    for at in 1..=head {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        assert!(refusal(&flipped).contains(ONLY), "byte {at}");
    }
    for length in 0..=head {
        let told = refusal(&whole[..length]);
        assert!(told.contains(ONLY) && told.contains("it is cut off, or no snapshot"), "cut off at {length}: {told}");
    }
    assert_eq!(refusal(&whole), "", "and whole again it is taken");
}

/// Nothing depends on it yet: the log has all that it would hold.
#[tokio::test(start_paused = true)]
async fn a_snapshot_that_fails_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let snap = folder.path().join("snap");
    let mut applier = open(&snap, &notebook(&["one"])).unwrap();
    fs::remove_dir(&snap).unwrap();
    let building = tokio::spawn(async move { applier.build_snapshot().await });
    // The clock stands as long as anything can go on: a minute later it has failed some times.
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(!building.is_finished());
    fs::create_dir(&snap).unwrap();
    building.await.unwrap().unwrap();
    assert_eq!(files(&snap), [ONLY]);
}

//! The format on disk, held against bytes that were written once and stay.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use simulated_disk::SimulatedDisk;
use wal::{FORMAT, LogIndex, LogState, Options, Wal, WalError};

use crate::{
    contract::wait,
    model::{entry, id},
    workload::segments,
};

const OPTIONS: Options = Options { segment_bytes: 600, zeroed_bytes: 600, tail_bytes: 0 };

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1")
}

fn golden_files() -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(golden()).unwrap().map(|file| file.unwrap());
    files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
}

/// Every kind of record, and a second segment that says them again.
fn write(wal: &Wal) {
    wait(|done| wal.save_vote(*b"term 7, member 2", done));
    wait(|done| wal.append((1..=4).map(|index| entry(7, index, format!("entry {index}"))), done));
    wait(|done| wal.truncate_after(Some(LogIndex(3)), done));
    wait(|done| wal.append([entry(8, 4, "another entry 4")], done));
    wal.save_committed(id(8, 4)).unwrap();
    wait(|done| wal.purge(id(7, 2), done));
    wait(|done| wal.append([entry(8, 5, [5; 100])], done));
}

#[test]
fn what_is_written_now_is_what_was_written_then() {
    let disk = SimulatedDisk::default();
    let wal = Wal::open_in(Arc::new(disk.clone()), OPTIONS).unwrap();
    write(&wal);
    drop(wal);
    let (written, golden) = (segments(&disk), golden_files());
    assert_eq!(written.keys().collect::<Vec<_>>(), golden.keys().collect::<Vec<_>>());
    for (name, bytes) in &written {
        let other = bytes.iter().zip(&golden[name]).position(|(now, then)| now != then);
        assert_eq!((other, bytes.len()), (None, golden[name].len()), "{name} differs at this byte, or in length");
    }
}

#[test]
fn what_was_written_then_is_read_now() {
    let wal = Wal::open_in(Arc::new(SimulatedDisk::with_files(&golden_files())), OPTIONS).unwrap();
    assert_eq!(wal.state().unwrap(), LogState { purged: Some(id(7, 2)), last: Some(id(8, 5)) });
    assert_eq!(wal.vote().unwrap().as_deref(), Some(b"term 7, member 2".as_slice()));
    assert_eq!(wal.committed().unwrap(), Some(id(8, 4)));
    let entries = [entry(7, 3, "entry 3"), entry(8, 4, "another entry 4"), entry(8, 5, [5; 100])];
    assert_eq!(wal.entries(.., usize::MAX).unwrap(), entries);
}

#[test]
fn a_format_from_the_future_is_named() {
    let mut files = golden_files();
    files.values_mut().for_each(|bytes| bytes[8..12].copy_from_slice(&(FORMAT + 1).to_le_bytes()));
    match Wal::open_in(Arc::new(SimulatedDisk::with_files(&files)), OPTIONS) {
        Err(WalError::Newer { found, .. }) => assert_eq!(found, FORMAT + 1),
        other => panic!("{other:?}"),
    }
}

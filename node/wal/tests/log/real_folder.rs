//! The log in a folder of the file system.

use std::{fs, path::Path, sync::Arc, thread};

use wal::{Options, Wal, WalError};

use crate::{
    contract::wait,
    model::{entry, id},
};

const SMALL: Options = Options { segment_bytes: 4096, zeroed_bytes: 1024, tail_bytes: 1000 };

fn segments(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn everything_is_there_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("member").join("log");
    let entries: Vec<_> = (0..200).map(|index| entry(2, index, vec![index as u8; index as usize])).collect();
    let wal = Wal::open(&folder, SMALL).unwrap();
    wait(|done| wal.append(entries.clone(), done));
    wait(|done| wal.truncate_after(Some(wal::LogIndex(149)), done));
    wait(|done| wal.save_vote(*b"a vote", done));
    wal.save_committed(id(2, 140)).unwrap();
    drop(wal);
    for _ in 0..2 {
        let wal = Wal::open(&folder, SMALL).unwrap();
        assert_eq!(wal.entries(.., usize::MAX).unwrap(), entries[..150]);
        assert_eq!(wal.vote().unwrap().as_deref(), Some(b"a vote".as_slice()));
        assert_eq!(wal.committed().unwrap(), Some(id(2, 140)));
    }
}

#[test]
fn two_processes_never_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let wal = Wal::open(folder.path(), SMALL).unwrap();
    match Wal::open(folder.path(), SMALL) {
        Err(WalError::Locked { path }) => assert_eq!(path, folder.path()),
        other => panic!("{other:?}"),
    }
    drop(wal);
    Wal::open(folder.path(), SMALL).unwrap();
}

#[test]
fn segments_that_are_purged_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let wal = Wal::open(folder.path(), SMALL).unwrap();
    wait(|done| wal.append((0..100).map(|index| entry(1, index, [7; 300])), done));
    let all = segments(folder.path());
    assert!(all.len() > 8, "{all:?}");
    wait(|done| wal.purge(id(1, 49), done));
    let left = segments(folder.path());
    assert!(left.len() <= all.len() / 2 + 1 && all.ends_with(&left), "{left:?}");
    assert_eq!(wal.entries(.., usize::MAX).unwrap().len(), 50);
    wait(|done| wal.purge(id(1, 99), done));
    assert_eq!(segments(folder.path()).len(), 1);
}

#[test]
fn no_reader_sees_a_hole_while_others_append_and_purge() {
    let folder = tempfile::tempdir().unwrap();
    let wal = Wal::open(folder.path(), SMALL).unwrap();
    let reading = Arc::new(());
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (wal, writing) = (wal.clone(), Arc::downgrade(&reading));
            thread::spawn(move || {
                let mut reads = 0;
                while reads == 0 || writing.strong_count() > 0 {
                    let entries = wal.entries(.., usize::MAX).unwrap();
                    let (start, end) = (entries.first(), entries.last());
                    let span = start.zip(end).map_or(0, |(start, end)| end.id.index.0 - start.id.index.0 + 1);
                    assert_eq!(entries.len() as u64, span);
                    assert!(
                        entries.iter().all(|entry| entry.payload.iter().all(|byte| *byte == entry.id.index.0 as u8))
                    );
                    reads += 1;
                }
            })
        })
        .collect();
    for index in 0..600 {
        wal.append([entry(1, index, [index as u8; 100])], |answer| answer.unwrap()).unwrap();
        if index % 50 == 49 {
            wait(|done| wal.purge(id(1, index - 25), done));
        }
    }
    drop(reading);
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}

//! What a caller can rely on, one sentence a test.

use std::{
    io,
    sync::{Arc, mpsc},
};

use simulated_disk::{Faults, SimulatedDisk};
use wal::{Entry, LogIndex, LogState, MAX_PAYLOAD_BYTES, Options, Refusal, Wal, WalError};

use crate::{
    model::{entry, id},
    workload::SMALL,
};

/// Nothing stays in memory once it is on disk.
const FORGETFUL: Options = Options { tail_bytes: 0, ..SMALL };

fn open(disk: &SimulatedDisk, options: Options) -> Wal {
    Wal::open_in(Arc::new(disk.clone()), options).unwrap()
}

/// Waits until the change that is made with the callback is durable.
pub fn wait(change: impl FnOnce(Box<dyn FnOnce(io::Result<()>) + Send>) -> Result<(), WalError>) {
    let (answer, answered) = mpsc::channel();
    change(Box::new(move |result| answer.send(result).unwrap())).unwrap();
    answered.recv().unwrap().unwrap();
}

fn append(wal: &Wal, indices: std::ops::Range<u64>) {
    wait(|done| wal.append(indices.map(|index| entry(1, index, format!("entry {index}"))), done));
}

fn indices(entries: Result<Vec<Entry>, WalError>) -> Vec<u64> {
    entries.unwrap().iter().map(|entry| entry.id.index.0).collect()
}

#[test]
fn everything_is_readable_before_it_is_durable() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk, FORGETFUL);
    let reader = wal.clone();
    disk.hold();
    wal.append((0..3).map(|index| entry(1, index, "x")), |_| {}).unwrap();
    disk.wait_for_a_call();
    assert_eq!(indices(reader.entries(.., usize::MAX)), [0, 1, 2]);
    wal.truncate_after(Some(LogIndex(1)), |_| {}).unwrap();
    wal.append([entry(2, 2, "y")], |_| {}).unwrap();
    wal.purge(id(1, 0), |_| {}).unwrap();
    wal.save_vote(*b"vote", |_| {}).unwrap();
    wal.save_committed(id(1, 1)).unwrap();
    assert_eq!(reader.entries(.., usize::MAX).unwrap(), [entry(1, 1, "x"), entry(2, 2, "y")]);
    assert_eq!(reader.state().unwrap(), LogState { purged: Some(id(1, 0)), last: Some(id(2, 2)) });
    assert_eq!(reader.vote().unwrap().as_deref(), Some(b"vote".as_slice()));
    assert_eq!(reader.committed().unwrap(), Some(id(1, 1)));
    disk.release();
    append(&wal, 3..4);
    assert_eq!(reader.entries(1..=2, usize::MAX).unwrap(), [entry(1, 1, "x"), entry(2, 2, "y")]);
}

#[test]
fn a_range_is_cut_to_what_is_there_and_to_the_bytes_that_are_wanted() {
    for options in [FORGETFUL, Options { tail_bytes: 40, ..SMALL }, Options { tail_bytes: 1 << 20, ..SMALL }] {
        let wal = open(&SimulatedDisk::default(), options);
        append(&wal, 5..100);
        wait(|done| wal.purge(id(1, 9), done));
        assert_eq!(indices(wal.entries(.., usize::MAX)), (10..100).collect::<Vec<_>>());
        for (range, bytes, expected) in [
            (0..12, usize::MAX, vec![10, 11]),
            (98..200, usize::MAX, vec![98, 99]),
            (50..50, usize::MAX, vec![]),
            (0..10, usize::MAX, vec![]),
            (100..200, usize::MAX, vec![]),
            (50..60, 0, vec![50]),
            (50..60, 52, vec![50]),
            (50..60, 52 * 3, vec![50, 51, 52]),
            (u64::MAX..u64::MAX, usize::MAX, vec![]),
        ] {
            assert_eq!(indices(wal.entries(range.clone(), bytes)), expected, "{range:?}, {bytes} bytes, {options:?}");
        }
        assert_eq!(indices(wal.entries(97..=98, usize::MAX)), [97, 98]);
        assert_eq!(indices(wal.entries(..=u64::MAX, 0)), [10]);
    }
}

#[test]
fn entries_of_every_size_are_read_back() {
    let disk = SimulatedDisk::default();
    let sizes = [0, 1, 2, 3, 4, 5, 511, 512, 2900, 3000, 3001, 10_000, 7];
    let entries: Vec<_> = sizes.iter().zip(0..).map(|(size, index)| entry(1, index, vec![7; *size])).collect();
    let wal = open(&disk, FORGETFUL);
    wait(|done| wal.append(entries.clone(), done));
    assert_eq!(wal.entries(.., usize::MAX).unwrap(), entries);
    drop(wal);
    assert_eq!(open(&disk, FORGETFUL).entries(.., usize::MAX).unwrap(), entries);
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk, SMALL);
    append(&wal, 5..10);
    wal.save_committed(id(1, 7)).unwrap();
    let refusal = |result: Result<(), WalError>| match result {
        Err(WalError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    };
    let hole = |expected, found| Refusal::Hole { expected: LogIndex(expected), found: LogIndex(found) };
    let (expected, before) = (LogIndex(10), wal.state().unwrap());
    assert_eq!(refusal(wal.append([entry(1, 11, "x")], |_| panic!())), hole(10, 11));
    assert_eq!(refusal(wal.append([entry(1, 9, "x")], |_| panic!())), hole(10, 9));
    assert_eq!(refusal(wal.append([entry(1, 10, "x"), entry(1, 12, "x")], |_| panic!())), hole(11, 12));
    let committed = |from| Refusal::Committed { committed: LogIndex(7), from: LogIndex(from) };
    assert_eq!(refusal(wal.truncate_after(None, |_| panic!())), committed(0));
    assert_eq!(refusal(wal.truncate_after(Some(LogIndex(6)), |_| panic!())), committed(7));
    assert_eq!(refusal(wal.purge(id(1, 3), |_| panic!())), hole(5, 4));
    let ahead = Refusal::AheadOfLog { committed: expected, next: expected };
    assert_eq!(refusal(wal.save_committed(id(1, 10))), ahead);
    let large = vec![0; MAX_PAYLOAD_BYTES + 1];
    assert_eq!(refusal(wal.save_vote(large, |_| panic!())), Refusal::TooLarge { bytes: MAX_PAYLOAD_BYTES + 1 });
    assert_eq!(wal.state().unwrap(), before);
    append(&wal, 10..11);
    drop(wal);
    assert_eq!(indices(open(&disk, SMALL).entries(.., usize::MAX)), (5..11).collect::<Vec<_>>());
}

#[test]
fn a_log_goes_on_behind_a_snapshot() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk, SMALL);
    append(&wal, 0..10);
    wait(|done| wal.purge(id(3, 20), done));
    assert_eq!(wal.state().unwrap(), LogState { purged: Some(id(3, 20)), last: Some(id(3, 20)) });
    wait(|done| wal.truncate_after(None, done));
    wait(|done| wal.purge(id(1, 4), done));
    assert_eq!(wal.state().unwrap(), LogState { purged: Some(id(3, 20)), last: Some(id(3, 20)) });
    assert!(wal.append([entry(3, 20, "x")], |_| {}).is_err());
    append(&wal, 21..23);
    drop(wal);
    let wal = open(&disk, SMALL);
    assert_eq!(wal.state().unwrap(), LogState { purged: Some(id(3, 20)), last: Some(id(1, 22)) });
    assert_eq!(indices(wal.entries(.., usize::MAX)), [21, 22]);
}

#[test]
fn what_is_asked_for_during_a_sync_shares_the_next_one() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk, Options { segment_bytes: 1 << 20, zeroed_bytes: 1 << 16, ..SMALL });
    let (answers, answered) = mpsc::channel();
    let before = disk.syncs();
    disk.hold();
    for index in 0..100 {
        let answers = answers.clone();
        wal.append([entry(1, index, "x")], move |answer| answers.send((index, answer.is_ok())).unwrap()).unwrap();
        if index == 0 {
            disk.wait_for_a_call();
        }
    }
    disk.release();
    assert!((0..100).all(|index| answered.recv().unwrap() == (index, true)));
    assert_eq!(disk.syncs() - before, 2);
}

#[test]
fn what_is_committed_costs_no_sync_and_is_there_after_a_close() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk, SMALL);
    append(&wal, 0..3);
    let before = disk.boundaries();
    wal.save_committed(id(1, 1)).unwrap();
    wal.save_committed(id(1, 0)).unwrap();
    assert_eq!((wal.committed().unwrap(), disk.boundaries()), (Some(id(1, 1)), before));
    drop(wal);
    assert_eq!(open(&disk, SMALL).committed().unwrap(), Some(id(1, 1)));
}

#[test]
fn an_empty_append_is_answered_after_what_was_before_it() {
    let wal = open(&SimulatedDisk::new(Faults::default()), SMALL);
    let (answers, answered) = mpsc::channel();
    let later = answers.clone();
    wal.append([entry(1, 0, "x")], move |_| answers.send("first").unwrap()).unwrap();
    wal.append([], move |answer| later.send(answer.map_or("failed", |()| "second")).unwrap()).unwrap();
    assert_eq!([answered.recv().unwrap(), answered.recv().unwrap()], ["first", "second"]);
}

#[test]
fn the_last_clone_may_end_in_a_callback() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk, SMALL);
    let (last, (answers, answered)) = (wal.clone(), mpsc::channel());
    disk.hold();
    wal.append([entry(1, 0, "x")], move |_| {
        drop(last);
        answers.send(()).unwrap();
    })
    .unwrap();
    drop(wal);
    disk.release();
    answered.recv().unwrap();
}

#[test]
fn every_batch_that_is_synced_is_measured() {
    let wal = open(&SimulatedDisk::default(), SMALL);
    assert_eq!(wal.measured().syncs.read().count, 0);
    for index in 0..3 {
        append(&wal, index..index + 1);
    }
    wait(|done| wal.save_vote(*b"vote", done));
    assert_eq!(wal.measured().syncs.read().count, 4);
}

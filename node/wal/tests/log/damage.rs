//! Bytes that are not as they were written: an error that says where, or a clean cut of the last batch; never a wrong
//! entry.

use std::{collections::BTreeMap, sync::Arc};

use simulated_disk::{Chance, Faults, SimulatedDisk};
use wal::{Options, Wal, WalError};

use crate::{
    model::{Model, Truth},
    workload::{SMALL, Workload, segments},
};

const OPTIONS: Options = Options { segment_bytes: 900, zeroed_bytes: 300, ..SMALL };

/// A log, how it came to be, and where in which file its last batch begins.
struct Written {
    files: BTreeMap<String, Vec<u8>>,
    truth: Truth,
    last_batch: (String, usize),
}

fn write(seed: u64) -> Written {
    write_with(OPTIONS, seed)
}

fn write_with(options: Options, seed: u64) -> Written {
    let (mut chance, mut truth) = (Chance::new(seed), Truth::default());
    let disk = SimulatedDisk::new(Faults::default());
    let wal = Wal::open_in(Arc::new(disk.clone()), options).unwrap();
    let mut workload = Workload::new(&wal, &disk, &mut chance, &mut truth);
    workload.run(5).unwrap();
    let before = segments(&disk);
    workload.run(1).unwrap();
    drop(wal);
    let files = segments(&disk);
    let (name, _) = files.last_key_value().unwrap();
    // A file that is new since then is whole up to where its own batch begins, which no test needs to know exactly.
    let end = before.get(name).map_or(0, |bytes| bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    Written { last_batch: (name.clone(), end), files, truth }
}

/// Opens these files; whatever opens must be a state that the log was in.
fn open(written: &Written, files: &BTreeMap<String, Vec<u8>>) -> Result<usize, WalError> {
    let wal = Wal::open_in(Arc::new(SimulatedDisk::with_files(files)), OPTIONS)?;
    let found = Model::read(&wal).unwrap();
    let state = written.truth.states.iter().rposition(|state| *state == found);
    Ok(state.unwrap_or_else(|| panic!("never was in this state: {found:?}")))
}

#[test]
fn a_flipped_bit_is_an_error_or_cuts_the_last_batch() {
    let (mut errors, mut cuts) = (0, 0);
    for seed in 0..6 {
        let written = write(seed);
        let last = written.truth.states.len() - 1;
        assert_eq!(open(&written, &written.files).unwrap(), last);
        for (name, at) in written.files.iter().flat_map(|(name, bytes)| (0..bytes.len()).map(move |at| (name, at))) {
            let mut files = written.files.clone();
            files.get_mut(name).unwrap()[at] ^= 1 << (at % 8);
            let where_it_is = format!("seed {seed}, {name}, byte {at}");
            match open(&written, &files) {
                Ok(state) if state == last => assert_eq!(*name, written.last_batch.0, "{where_it_is}: not noticed"),
                Ok(_) => {
                    assert!(*name == written.last_batch.0 && at >= written.last_batch.1, "{where_it_is}: dropped");
                    cuts += 1;
                }
                Err(WalError::Damaged { path, offset, .. }) => {
                    assert_eq!((path.to_str(), offset <= at as u64), (Some(name.as_str()), true), "{where_it_is}");
                    errors += 1;
                }
                Err(WalError::Newer { .. }) => assert!((8..12).contains(&at), "{where_it_is}"),
                Err(other) => panic!("{where_it_is}: {other:?}"),
            }
        }
    }
    assert!(errors > 1000 && cuts > 100, "{errors} errors, {cuts} cuts");
}

#[test]
fn what_a_segment_says_again_is_never_cut() {
    let mut said = 0;
    for seed in 0..6 {
        let written = write(seed);
        let (name, bytes) = written.files.last_key_value().unwrap();
        // As if the power was lost when the segment had its name and no record of its own.
        let whole = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let mut files = written.files.clone();
        files.get_mut(name).unwrap()[whole..].fill(0);
        open(&written, &files).unwrap();
        for at in 40..whole {
            let mut flipped = files.clone();
            flipped.get_mut(name).unwrap()[at] ^= 1;
            assert!(matches!(open(&written, &flipped), Err(WalError::Damaged { .. })), "seed {seed}, byte {at}");
            said += 1;
        }
    }
    assert!(said > 100, "only {said} bytes");
}

#[test]
fn a_file_that_is_cut_short_is_an_error_or_cuts_the_end() {
    for seed in 0..6 {
        let written = write(seed);
        for (name, length) in written.files.iter().flat_map(|(name, bytes)| (0..bytes.len()).map(move |at| (name, at)))
        {
            let mut files = written.files.clone();
            files.get_mut(name).unwrap().truncate(length);
            let result = open(&written, &files);
            let last = *name == written.last_batch.0;
            assert!(last || result.is_err() || result.is_ok_and(|state| state + 1 == written.truth.states.len()));
        }
    }
}

#[test]
fn a_file_that_is_cut_off_within_its_records_is_an_error() {
    let mut cut = 0;
    for (seed, options) in (0..12).map(|seed| (seed, if seed % 2 == 0 { OPTIONS } else { SMALL })) {
        let written = write_with(options, seed);
        let (name, bytes) = written.files.last_key_value().unwrap();
        for length in 0..=bytes.iter().rposition(|byte| *byte != 0).unwrap() {
            let mut files = written.files.clone();
            files.get_mut(name).unwrap().truncate(length);
            let opened = Wal::open_in(Arc::new(SimulatedDisk::with_files(&files)), options);
            assert!(matches!(opened, Err(WalError::Damaged { .. })), "seed {seed}, {length} bytes: {opened:?}");
            cut += 1;
        }
    }
    assert!(cut > 1000, "only {cut}");
}

#[test]
fn a_segment_that_is_missing_is_named() {
    let mut named = 0;
    for seed in 0..12 {
        let written = write(seed);
        let names: Vec<&String> = written.files.keys().collect();
        for name in &names[..names.len() - 1] {
            let mut files = written.files.clone();
            files.remove(*name);
            match open(&written, &files) {
                Err(WalError::Missing { path }) => {
                    assert_eq!(path.to_str(), Some(name.as_str()));
                    named += 1;
                }
                // Everything in it may have been purged since.
                other => assert_eq!(other.unwrap(), written.truth.states.len() - 1, "seed {seed} without {name}"),
            }
        }
    }
    assert!(named > 10, "only {named}");
}

#[test]
fn what_is_written_over_a_torn_tail_stays() {
    for seed in 0..6 {
        let mut written = write(seed);
        let (name, from) = written.last_batch.clone();
        let bytes = written.files.get_mut(&name).unwrap();
        let Some(torn) = (from.max(40)..bytes.len()).find(|at| bytes[*at] != 0) else { continue };
        bytes[torn] ^= 1;
        let disk = SimulatedDisk::with_files(&written.files);
        let mut chance = Chance::new(seed);
        for _ in 0..3 {
            let Ok(wal) = Wal::open_in(Arc::new(disk.clone()), OPTIONS) else { break };
            let mut truth = Truth::from(Model::read(&wal).unwrap(), wal.committed().unwrap());
            Workload::new(&wal, &disk, &mut chance, &mut truth).run(2).unwrap();
            drop(wal);
            let wal = Wal::open_in(Arc::new(disk.clone()), OPTIONS).unwrap();
            truth.check(&wal).unwrap();
        }
    }
}

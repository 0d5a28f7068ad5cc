//! The power is lost at every call of the disk that changes something, and the log is opened again.

use std::{ops::Range, sync::Arc};

use simulated_disk::{Chance, Faults, SimulatedDisk, Survival};
use wal::Wal;

use crate::{
    model::{Model, Truth},
    workload::{SMALL, Workload},
};

const BATCHES: usize = 8;

/// A log that lives through two losses of power, the first at a given call, the second at any; gives how many calls
/// there were in its first life.
fn life(seed: u64, faults: Faults, survival: Survival) -> Result<usize, String> {
    let mut chance = Chance::new(seed);
    let mut truth = Truth::default();
    let mut disk = SimulatedDisk::new(faults);
    let mut calls = None;
    for next in [Some(30), None] {
        work(&disk, &mut chance, &mut truth)?;
        calls.get_or_insert(disk.boundaries());
        let ends_at = next.map(|calls| chance.below(calls));
        disk = disk.after_power_loss(survival, &mut chance, Faults { ends_at, ..faults });
    }
    work(&disk, &mut chance, &mut truth)?;
    Ok(calls.unwrap_or(0))
}

/// Opens the log, holds it against the truth, and works with it while there is power.
fn work(disk: &SimulatedDisk, chance: &mut Chance, truth: &mut Truth) -> Result<(), String> {
    let wal = match Wal::open_in(Arc::new(disk.clone()), SMALL) {
        Ok(wal) => wal,
        Err(_) if disk.is_dead() => return Ok(()),
        Err(error) => return Err(format!("cannot be opened: {error:?}")),
    };
    truth.check(&wal)?;
    // Whatever is there when a log was opened stays: a node acts upon it.
    *truth = Truth::from(Model::read(&wal)?, wal.committed().map_err(|error| error.to_string())?);
    let worked = Workload::new(&wal, disk, chance, truth).run(BATCHES);
    if disk.is_dead() { Ok(()) } else { worked }
}

/// How many lives there were, and what went wrong in which.
#[derive(Debug, Default)]
struct Search {
    lives: usize,
    faults: Vec<String>,
}

/// Every call of these seeds' first lives, every kind of loss.
fn search(seeds: Range<u64>, faults: Faults) -> Search {
    let mut search = Search::default();
    for seed in seeds {
        let calls = life(seed, Faults::default(), Survival::Everything).unwrap();
        for (call, survival) in (0..calls).flat_map(|call| Survival::ALL.map(|survival| (call, survival))) {
            search.lives += 1;
            if let Err(fault) = life(seed, Faults { ends_at: Some(call), ..faults }, survival) {
                search.faults.push(format!("seed {seed}, call {call}, {survival:?}: {fault}"));
            }
        }
    }
    search
}

/// Without this, what was said to be durable is lost, and the search sees it.
fn is_noticed(faults: Faults) {
    let search = search(0..2, faults);
    assert!(search.faults.iter().any(|fault| fault.contains("durable up to state")), "{search:?}");
}

#[test]
fn nothing_that_was_durable_is_lost_at_any_call() {
    let search = search(0..12, Faults::default());
    assert!(search.faults.is_empty() && search.lives > 1000, "{search:?}");
}

#[test]
#[ignore = "slow: some hundred seeds, minutes"]
fn nothing_that_was_durable_is_lost_at_any_call_of_many_more() {
    let search = search(1000..1300, Faults::default());
    assert!(search.faults.is_empty(), "{search:?}");
}

#[test]
fn without_the_sync_of_records_it_is_noticed() {
    is_noticed(Faults { records_are_not_synced: true, ..Faults::default() });
}

#[test]
fn without_the_sync_of_names_it_is_noticed() {
    is_noticed(Faults { names_are_not_synced: true, ..Faults::default() });
}

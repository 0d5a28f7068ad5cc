//! A disk that is full, or fails a sync, or a process that is killed: the log takes nothing more, and what was durable is
//! there when it is opened.

use std::{
    ops::Range,
    sync::{Arc, mpsc},
};

use simulated_disk::{Chance, Faults, SimulatedDisk, Survival};
use wal::{Wal, WalError};

use crate::{
    model::{Model, Truth, entry, id},
    workload::{SMALL, Workload},
};

const SEEDS: Range<u64> = 0..12;

/// Works on a disk with this fault; opens the log once it is mended, works on, and loses the power.
fn fail_and_mend(seed: u64, faults: Faults) -> Result<(), String> {
    let (mut chance, mut truth) = (Chance::new(seed), Truth::default());
    let disk = SimulatedDisk::new(faults);
    if let Ok(wal) = Wal::open_in(Arc::new(disk.clone()), SMALL) {
        let worked = Workload::new(&wal, &disk, &mut chance, &mut truth).run(8);
        worked.err().ok_or("the fault did not show")?;
        refuses_everything(&wal)?;
    }
    let mended = disk.after_exit(Faults::default());
    open_and_work(&mended, &mut chance, &mut truth).map_err(|fault| format!("mended: {fault}"))?;
    let dark = mended.after_power_loss(Survival::Nothing, &mut chance, Faults::default());
    open_and_work(&dark, &mut chance, &mut truth).map_err(|fault| format!("after a loss of power: {fault}"))
}

/// Opens the log, holds it against the truth, and asks for a little more, or for nothing.
fn open_and_work(disk: &SimulatedDisk, chance: &mut Chance, truth: &mut Truth) -> Result<(), String> {
    let wal = Wal::open_in(Arc::new(disk.clone()), SMALL).map_err(|error| format!("{error:?}"))?;
    truth.check(&wal)?;
    *truth = Truth::from(Model::read(&wal)?, wal.committed().map_err(|error| error.to_string())?);
    let batches = chance.below(3);
    Workload::new(&wal, disk, chance, truth).run(batches)
}

fn refuses_everything(wal: &Wal) -> Result<(), String> {
    let failed = |what: &str, result: Result<(), WalError>| match result {
        Err(WalError::Failed(_)) => Ok(()),
        other => Err(format!("after a failure, {what}: {other:?}")),
    };
    failed("append", wal.append([], |_| {}))?;
    failed("vote", wal.save_vote([], |_| {}))?;
    failed("truncate", wal.truncate_after(None, |_| {}))?;
    failed("purge", wal.purge(id(1, 1), |_| {}))?;
    failed("commit", wal.save_committed(id(1, 1)))?;
    failed("entries", wal.entries(.., usize::MAX).map(drop))?;
    failed("state", wal.state().map(drop))?;
    failed("vote", wal.vote().map(drop))?;
    failed("committed", wal.committed().map(drop))
}

/// How many calls of the disk this seed's work takes.
fn calls(seed: u64) -> usize {
    let (mut chance, mut truth) = (Chance::new(seed), Truth::default());
    let disk = SimulatedDisk::new(Faults::default());
    let wal = Wal::open_in(Arc::new(disk.clone()), SMALL).unwrap();
    Workload::new(&wal, &disk, &mut chance, &mut truth).run(8).unwrap();
    disk.boundaries()
}

/// Whether the fault came too late, or met a call of another kind.
fn is_harmless(result: &Result<(), String>) -> bool {
    result.as_ref().is_err_and(|fault| fault == "the fault did not show")
}

/// Every call of every seed as the place of a fault.
fn at_every_call(faults: impl Fn(usize) -> Faults) {
    let mut shown = 0;
    for (seed, call) in SEEDS.flat_map(|seed| (0..calls(seed)).map(move |call| (seed, call))) {
        let result = fail_and_mend(seed, faults(call));
        if !is_harmless(&result) {
            result.unwrap_or_else(|fault| panic!("seed {seed}, call {call}: {fault}"));
            shown += 1;
        }
    }
    assert!(shown > 100, "only {shown} faults");
}

#[test]
fn a_disk_that_is_full_from_any_call_on_loses_nothing() {
    at_every_call(|call| Faults { full_at: Some(call), ..Faults::default() });
}

#[test]
fn a_sync_that_fails_is_never_tried_again_and_loses_nothing() {
    at_every_call(|call| Faults { sync_fails_at: Some(call), ..Faults::default() });
}

#[test]
fn a_process_that_is_killed_at_any_call_loses_nothing() {
    at_every_call(|call| Faults { ends_at: Some(call), ..Faults::default() });
}

#[test]
fn all_who_wait_learn_of_the_failure_and_its_cause() {
    // The first six calls make the segment.
    let disk = SimulatedDisk::new(Faults { full_at: Some(6), ..Faults::default() });
    let wal = Wal::open_in(Arc::new(disk.clone()), SMALL).unwrap();
    let (answers, answered) = mpsc::channel();
    disk.hold();
    for index in 0..3 {
        let answers = answers.clone();
        wal.append([entry(1, index, "x")], move |answer| answers.send(answer).unwrap()).unwrap();
        if index == 0 {
            disk.wait_for_a_call();
        }
    }
    disk.release();
    for _ in 0..3 {
        let error = answered.recv().unwrap().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        let cause = std::error::Error::source(error.get_ref().unwrap()).unwrap();
        assert_eq!(cause.to_string(), "cannot write 0000000000000001.wal");
    }
}

#[test]
fn a_callback_that_panics_fails_the_log() {
    let wal = Wal::open_in(Arc::new(SimulatedDisk::default()), SMALL).unwrap();
    let (answers, answered) = mpsc::channel::<()>();
    wal.append([entry(1, 0, "x")], move |_| {
        let _ended = answers;
        panic!("on purpose");
    })
    .unwrap();
    assert!(answered.recv().is_err());
    // The writer is unwinding: it may take a moment until it has told.
    while wal.state().is_ok() {
        std::thread::yield_now();
    }
    refuses_everything(&wal).unwrap();
}

//! The file of the next segment is made once half of a segment is full, and what stands in its way before it is needed ends
//! nothing.

use std::sync::Arc;

use simulated_disk::{Faults, SimulatedDisk};
use wal::{Wal, WriterTurns};

use crate::{model::entry, workload::SMALL};

const SPARE: &str = "next.tmp";
const SECOND: &str = "0000000000000002.wal";

struct Log {
    disk: SimulatedDisk,
    wal: Wal,
    turns: WriterTurns,
    next: u64,
}

impl Log {
    fn on(disk: SimulatedDisk) -> Self {
        let (wal, turns) = Wal::open_without_thread(Arc::new(disk.clone()), SMALL, || {}).unwrap();
        Self { disk, wal, turns, next: 0 }
    }

    fn has(&self, name: &str) -> bool {
        self.disk.files().contains_key(name)
    }

    fn append(&mut self) {
        self.wal
            .append(
                [entry(1, self.next, "some hundred bytes, or nearly so many, of which thirty fill a segment")],
                |_| {},
            )
            .unwrap();
        self.turns.take();
        self.next += 1;
    }

    fn append_until(&mut self, name: &str) {
        while !self.has(name) {
            self.append();
            assert!(self.next < 100, "{name} never comes");
        }
    }
}

#[test]
fn the_next_segment_is_made_of_a_file_that_was_made_ahead() {
    let mut log = Log::on(SimulatedDisk::default());
    log.append_until(SPARE);
    assert!((10..25).contains(&log.next), "half of it: {}", log.next);
    assert!(!log.has(SECOND));
    log.append_until(SECOND);
    assert!(!log.has(SPARE), "it has become the segment");
    let Log { disk, wal, turns, next } = log;
    drop((wal, turns));
    let again = Log::on(disk.after_exit(Faults::default()));
    assert_eq!(again.wal.entries(.., usize::MAX).unwrap().len() as u64, next);
}

#[test]
fn a_spare_that_cannot_be_made_is_made_later() {
    let mut log = Log::on(SimulatedDisk::default());
    while !log.has(SPARE) {
        log.append();
    }
    // Its sync is the last call so far.
    let fails = Faults { sync_fails_at: Some(log.disk.boundaries() - 1), ..Faults::default() };
    let mut failing = Log::on(SimulatedDisk::new(fails));
    while failing.next < log.next {
        failing.append();
    }
    assert!(!failing.has(SPARE), "it takes no room");
    failing.append_until(SECOND);
    assert_eq!(failing.wal.entries(.., usize::MAX).unwrap().len() as u64, failing.next);
}

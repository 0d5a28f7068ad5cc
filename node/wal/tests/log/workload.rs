//! What a node could ask of a log, as a seed decides; in batches that are the same each time.

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    sync::{atomic::Ordering, mpsc},
    time::Duration,
};

use simulated_disk::{Chance, SimulatedDisk};
use wal::{LogIndex, Options, Wal, WalError};

use crate::model::{Truth, entry, id};

/// Long enough for any machine; only a hang takes it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Small segments, so that few changes fill many; a memory for few entries, so that most are read from disk.
pub const SMALL: Options = Options { segment_bytes: 3000, zeroed_bytes: 1024, tail_bytes: 600 };

/// The segments of a log, by name. What is made for the next one says nothing.
pub fn segments(disk: &SimulatedDisk) -> BTreeMap<String, Vec<u8>> {
    disk.files().into_iter().filter(|(name, _)| name.ends_with(wal::SUFFIX)).collect()
}

/// A log under work.
pub struct Workload<'a> {
    pub wal: &'a Wal,
    pub disk: &'a SimulatedDisk,
    pub chance: &'a mut Chance,
    pub truth: &'a mut Truth,
    answers: (mpsc::Sender<io::Result<()>>, mpsc::Receiver<io::Result<()>>),
}

impl<'a> Workload<'a> {
    pub fn new(wal: &'a Wal, disk: &'a SimulatedDisk, chance: &'a mut Chance, truth: &'a mut Truth) -> Self {
        Self { wal, disk, chance, truth, answers: mpsc::channel() }
    }

    /// Asks for so many batches, or until the log fails; gives the first error.
    pub fn run(&mut self, batches: usize) -> Result<(), String> {
        (0..batches).try_for_each(|_| self.batch())
    }

    /// One change that is written alone, and those that gather while it is.
    fn batch(&mut self) -> Result<(), String> {
        let more = self.chance.below(5);
        self.disk.hold();
        let first = self.change();
        if first.is_ok() {
            self.disk.wait_for_a_call();
        }
        let asked: Vec<_> = std::iter::once(first).chain((0..more).map(|_| self.change())).collect();
        self.disk.release();
        for _ in asked.iter().filter(|change| change.is_ok()) {
            let answer = self.answers.1.recv_timeout(PATIENCE).map_err(|_| "a callback was not called")?;
            answer.map_err(|error| format!("{error:?}"))?;
        }
        asked.into_iter().collect::<Result<(), _>>().map_err(|error| format!("{error:?}"))
    }

    fn change(&mut self) -> Result<(), WalError> {
        match self.chance.below(16) {
            0..8 => self.append(),
            8..10 => self.vote(),
            10..12 => self.truncate(),
            12..14 => self.purge(),
            _ => self.commit().and_then(|()| self.append()),
        }
    }

    fn append(&mut self) -> Result<(), WalError> {
        let term = self.truth.states.len() as u64;
        let next = self.truth.now().next();
        let entries: Vec<_> = (next..=next + self.chance.below(3) as u64)
            .map(|index| {
                let size = self.size();
                entry(term, index, vec![(term + index) as u8; size])
            })
            .collect();
        for entry in &entries {
            self.truth.change(|log| log.append(entry.clone()));
        }
        let done = self.callback();
        self.wal.append(entries, done)
    }

    /// Most entries are small, some take sectors, and a few are larger than a segment.
    fn size(&mut self) -> usize {
        match self.chance.below(40) {
            0 => 4000,
            1..8 => self.chance.below(1500),
            _ => self.chance.below(100),
        }
    }

    fn vote(&mut self) -> Result<(), WalError> {
        let vote = format!("vote {}", self.truth.states.len()).into_bytes();
        self.truth.change(|log| log.vote = Some(vote.clone().into()));
        let done = self.callback();
        self.wal.save_vote(vote, done)
    }

    fn truncate(&mut self) -> Result<(), WalError> {
        let Some(from) = self.pick(self.uncommitted()) else { return self.append() };
        self.truth.change(|log| log.truncate(from));
        let done = self.callback();
        self.wal.truncate_after(from.checked_sub(1).map(LogIndex), done)
    }

    fn purge(&mut self) -> Result<(), WalError> {
        let now = self.truth.now();
        let first = now.purged.map_or(0, |purged| purged.index.0);
        // Now and then a snapshot ahead of the log.
        let ahead = if self.chance.below(4) == 0 { 5 } else { 0 };
        let next = self.truth.now().next();
        let Some(index) = self.pick(first..next + ahead) else { return self.append() };
        let upto = self.truth.now().entries.get(&index).map_or(id(1, index), |entry| entry.id);
        self.truth.change(|log| log.purge(upto));
        let done = self.callback();
        self.wal.purge(upto, done)
    }

    fn commit(&mut self) -> Result<(), WalError> {
        let Some(index) = self.pick(self.uncommitted()) else { return Ok(()) };
        let Some(upto) = self.truth.now().entries.get(&index).map(|entry| entry.id) else { return Ok(()) };
        self.truth.commit(upto);
        self.wal.save_committed(upto)
    }

    fn uncommitted(&self) -> Range<u64> {
        self.truth.committed().map_or(0, |id| id.index.0 + 1)..self.truth.now().next()
    }

    fn pick(&mut self, range: Range<u64>) -> Option<u64> {
        let length = range.end.checked_sub(range.start).filter(|length| *length > 0)?;
        Some(range.start + self.chance.below(length as usize) as u64)
    }

    /// Notes that the state of now is durable.
    fn callback(&self) -> impl FnOnce(io::Result<()>) + Send + 'static {
        let (answers, durable, state) =
            (self.answers.0.clone(), self.truth.durable.clone(), self.truth.states.len() - 1);
        move |answer| {
            if answer.is_ok() {
                assert!(durable.swap(state, Ordering::SeqCst) < state, "callbacks come in the order of the changes");
            }
            let _ = answers.send(answer);
        }
    }
}

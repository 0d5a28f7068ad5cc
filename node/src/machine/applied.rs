//! What raft does with the state: applies entries, stores it, puts a stored one in its place.

use std::{
    io::{BufRead, Write},
    mem,
    sync::{Arc, PoisonError, RwLockWriteGuard, TryLockError},
};

use consensus::{Content, Frozen, Members, Restored, Stop, off_thread};
use proto::{ClusterVersion, LogIndex, MemberId, Release};

use super::{Machine, Outcome, Proposal, counts::Batch};
use crate::{
    cluster::{gate::Gate, membership::Membership},
    entry::{Entry, EntryError},
    state::{Applied, ProposalId, Refusal, Restore, State},
};

/// Why this member must not go on.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// An entry that it does not know, or that is damaged.
    #[error("cannot apply entry {index}: {source}")]
    Entry { index: LogIndex, source: EntryError },
    /// The cluster has moved on without it (KEP-4647, "Restart").
    #[error(
        "the cluster is at version {version}, above {release} that this member runs: start it with release {version}, or \
         lower the cluster first, one minor at a time (`etcdctl downgrade enable`), and wait until this member's storage version is down"
    )]
    ClusterVersion { version: ClusterVersion, release: Release },
}

/// An entry of the log, read.
struct Committed {
    index: LogIndex,
    what: Read,
}

enum Read {
    /// Raft's own.
    Nothing,
    Command(Command),
    Members(Membership),
}

impl Committed {
    fn entry(&self) -> Option<&Entry> {
        match &self.what {
            Read::Command(command) => command.entry.as_ref().ok(),
            Read::Nothing | Read::Members(_) => None,
        }
    }
}

fn membership(Members { voters, addresses }: &Members) -> Membership {
    let urls = |address: &String| address.split(',').map(str::to_owned).collect();
    Membership {
        voters: voters.iter().map(|id| MemberId(*id)).collect(),
        peer_urls: addresses.iter().map(|(id, address)| (MemberId(*id), urls(address))).collect(),
    }
}

/// An entry, which of its proposer's it is, and below which that waits for none.
struct Command {
    id: ProposalId,
    settled: u64,
    /// Or the release that first knows it, which is a later one.
    entry: Result<Entry, ClusterVersion>,
}

impl Machine {
    fn check(&self, state: &State) -> Result<(), Fault> {
        let release = &self.shared.release;
        match state.cluster.version {
            Some(version) if version > release.cluster_version() => {
                Err(Fault::ClusterVersion { version, release: release.clone() })
            }
            _ => Ok(()),
        }
    }

    fn read_entry(&self, index: u64, content: &Content) -> Result<Committed, Fault> {
        let index = LogIndex(index);
        let fault = |source| Fault::Entry { index, source };
        let command = match content {
            Content::Nothing => return Ok(Committed { index, what: Read::Nothing }),
            Content::Members(members) => return Ok(Committed { index, what: Read::Members(membership(members)) }),
            Content::Command(command) => command,
        };
        let Proposal { id, settled, entry } = Proposal::decode(command.clone()).map_err(fault)?;
        let entry = match Entry::decode(entry, self.shared.release.cluster_version()) {
            Err(EntryError::Newer(since)) => Err(since),
            entry => Ok(entry.map_err(fault)?),
        };
        Ok(Committed { index, what: Read::Command(Command { id, settled, entry }) })
    }

    fn apply_one(&self, state: &mut State, Committed { index, what }: Committed) -> Option<(ProposalId, Outcome)> {
        match what {
            Read::Command(Command { id, settled, entry }) if state.sessions.admit(id, settled) => {
                Some((id, self.apply_command(state, index, entry)))
            }
            _ => {
                state.applied = index;
                None
            }
        }
    }

    fn apply_command(&self, state: &mut State, index: LogIndex, entry: Result<Entry, ClusterVersion>) -> Outcome {
        match entry {
            Ok(entry) => state.apply(index, entry, &self.shared.registry),
            Err(since) => {
                state.applied = index;
                Err(Refusal::AboveVersion(since))
            }
        }
    }

    fn apply_all(&self, entries: Vec<Committed>) -> Result<(), Fault> {
        let mut state = self.write();
        let (mut outcomes, mut is_news, mut is_compacted, mut batch) = (Vec::new(), false, false, Batch::begin());
        let mut was_undecided = self.shared.gate_times.is_undecided();
        for entry in entries {
            if let Read::Members(members) = &entry.what {
                is_news |= state.follow(entry.index, members, &self.shared.registry);
            }
            let (index, begun) = (entry.index, entry.entry().map(|entry| Batch::one(&entry.what, &state)));
            if let Some((id, outcome)) = self.apply_one(&mut state, entry) {
                begun.into_iter().for_each(|begun| batch.note(index, begun, &outcome));
                is_news |= matches!(outcome, Ok(Applied::Cluster { changed: true }));
                is_compacted |= matches!(outcome, Ok(Applied::Compact(_)));
                // What others wait for may be large, and is theirs.
                outcomes.extend(self.shared.proposals.is_ours(&id).then_some((id, outcome)));
            }
            // Within a batch, too: a reset and the decision after it may come in one.
            let is_undecided = state.cluster.gate == Gate::Undecided;
            if is_undecided != was_undecided {
                self.shared.gate_times.note(is_undecided);
                was_undecided = is_undecided;
            }
            // After each: a log that goes up and down again is none that a lower release may replay.
            self.check(&state)?;
        }
        let applied = state.applied;
        drop(state);
        self.shared.counts.note_batch(batch);
        if is_news {
            self.shared.cluster.send_replace(applied);
        }
        if is_compacted {
            self.shared.compacted.notify_one();
        }
        self.shared.proposals.settle(outcomes);
        self.shared.applied.send_replace(applied);
        Ok(())
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        match self.shared.state.try_write() {
            Ok(state) => state,
            // Some reader of much is not done yet.
            Err(TryLockError::WouldBlock) => {
                off_thread(|| self.shared.state.write().unwrap_or_else(PoisonError::into_inner))
            }
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
        }
    }
}

impl consensus::Machine for Machine {
    fn apply(&self, entries: &[(u64, Content)]) -> Result<(), Stop> {
        let read = |(index, content): &(u64, Content)| self.read_entry(*index, content);
        let entries: Vec<_> = entries.iter().map(read).collect::<Result<_, _>>()?;
        let may_take_long = |entry: &Committed| entry.entry().is_some_and(|entry| entry.what.may_take_long());
        match entries.iter().any(may_take_long) {
            true => off_thread(|| self.apply_all(entries))?,
            false => self.apply_all(entries)?,
        }
        Ok(())
    }

    fn freeze(&self) -> Frozen {
        let state = self.frozen();
        let form = state.form(&self.shared.registry);
        Box::new(move |out: &mut dyn Write| state.snapshot(form).try_for_each(|piece| out.write_all(&piece)))
    }

    fn read_state(self: Arc<Self>, bytes: &mut dyn BufRead) -> Result<Restored, Stop> {
        let (mut restore, in_progress) =
            (Restore::by(&self.shared.release), self.shared.counts.snapshots_applied_now.hold());
        loop {
            let piece = bytes.fill_buf()?;
            let length = piece.len();
            if length == 0 {
                break;
            }
            restore.push(piece)?;
            bytes.consume(length);
        }
        let state = restore.finish()?;
        Ok(Box::new(move || {
            let _in_progress = in_progress;
            self.check(&state)?;
            let applied = state.applied;
            // Not under the lock: of a large state that takes its time.
            let is_undecided = state.cluster.gate == Gate::Undecided;
            let before = mem::replace(&mut *self.write(), state);
            drop(before);
            self.shared.gate_times.note(is_undecided);
            self.shared.cluster.send_replace(applied);
            self.shared.compacted.notify_one();
            self.shared.applied.send_replace(applied);
            Ok(())
        }))
    }
}

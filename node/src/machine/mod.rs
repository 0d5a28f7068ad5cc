//! The state as this process has it: raft applies to it, everybody else reads, and proposers hear what came of theirs.

mod applied;
mod counts;
mod foreign;
mod forgetting;
mod gate_times;
mod hashes;
mod proposals;

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use proto::{ClusterVersion, LogIndex, Release, Revision};
use tokio::sync::{Notify, watch};

pub use applied::Fault;
pub use counts::Counts;
pub(crate) use counts::DURATION_BOUNDS;
pub use foreign::Foreign;
pub use gate_times::{GateReading, GateTimes};
pub use proposals::{Outcome, Proposal, Proposals, Waiting};

use crate::{features::Registry, state::State};
use hashes::Hashes;

/// The state, shared. Every clone is the same one.
#[derive(Clone, Debug)]
pub struct Machine {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: RwLock<State>,
    applied: watch::Sender<LogIndex>,
    /// The last index that changed anything of the cluster.
    cluster: watch::Sender<LogIndex>,
    /// Told where there may be something to forget.
    compacted: Notify,
    /// Up to which compaction everything is forgotten.
    forgotten: watch::Sender<Revision>,
    hashes: Hashes,
    proposals: Proposals,
    registry: Registry,
    release: Release,
    counts: Arc<Counts>,
    gate_times: GateTimes,
}

/// What may take so long to be applied where nobody says otherwise (etcd, `DefaultWarningApplyDuration`).
const WARNING: Duration = Duration::from_millis(100);

impl Machine {
    /// A machine for a member of this release, over the state of a new cluster.
    pub fn new(release: Release, registry: Registry, proposals: Proposals) -> Self {
        Self::warning_after(WARNING, release, registry, proposals)
    }

    /// The same; what takes longer than this to be applied is logged.
    pub fn warning_after(limit: Duration, release: Release, registry: Registry, proposals: Proposals) -> Self {
        let (applied, cluster) = (watch::Sender::default(), watch::Sender::default());
        let (compacted, forgotten) = (Notify::new(), watch::Sender::new(Revision(-1)));
        let state = RwLock::default();
        let (hashes, counts) = (Hashes::default(), Arc::new(Counts::new(limit)));
        let gate_times = GateTimes::begin();
        let shared = Shared {
            state,
            applied,
            cluster,
            compacted,
            forgotten,
            hashes,
            proposals,
            registry,
            release,
            counts,
            gate_times,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Looks at the state; nothing is applied meanwhile, so be quick. Who looks at much takes [`Machine::frozen`].
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The state as it is now, to be looked at for as long as one likes.
    pub fn frozen(&self) -> State {
        self.read(State::clone)
    }

    /// The last index that was applied, as it moves.
    pub fn applied(&self) -> watch::Receiver<LogIndex> {
        self.shared.applied.subscribe()
    }

    /// The last index that changed anything of the cluster, as it moves.
    pub fn cluster_changed(&self) -> watch::Receiver<LogIndex> {
        self.shared.cluster.subscribe()
    }

    /// Puts the state at a lower cluster version, where nobody runs.
    pub fn lower_to(&self, target: ClusterVersion) {
        self.write().lower_to(target);
    }

    /// What it has counted since it was made.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// How long the gate was undecided since it was made.
    pub fn gate_times(&self) -> &GateTimes {
        &self.shared.gate_times
    }

    /// What this source knows of features.
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// Applies an entry without a log.
    #[cfg(test)]
    #[allow(clippy::unwrap_used)]
    pub(crate) fn apply_of_test(&self, what: crate::entry::EntryKind) {
        let mut state = self.shared.state.write().unwrap();
        let next = LogIndex(state.applied.0 + 1);
        state.apply(next, what.into(), &self.shared.registry).unwrap();
    }

    /// Follows raft's members without a log.
    #[cfg(test)]
    #[allow(clippy::unwrap_used)]
    pub(crate) fn follow_of_test(&self, to: &crate::cluster::membership::Membership) {
        let mut state = self.shared.state.write().unwrap();
        let next = LogIndex(state.applied.0 + 1);
        state.follow(next, to, &self.shared.registry);
    }

    /// The proposals of this process that are under way.
    pub fn proposals(&self) -> &Proposals {
        &self.shared.proposals
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod interleavings;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod releases_test;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::thread;

    use proto::{
        MemberId,
        etcdserverpb::{CompactionRequest, PutRequest},
    };

    use super::*;
    use crate::{cluster::member::Starts, entry::EntryKind, features::FEATURES, state::Form};

    fn put(machine: &Machine, key: u32) {
        let key = format!("{key:016}").into_bytes();
        machine.apply_of_test(EntryKind::Put(PutRequest { key, value: vec![7; 8], ..PutRequest::default() }));
    }

    /// By a clone, or under the lock, entries would wait for as long as it looks.
    #[test]
    fn who_looks_at_much_holds_up_nobody_and_sees_one_moment() {
        let machine = Machine::new("3.6.0".parse().unwrap(), FEATURES, Proposals::new(MemberId(1), Starts(1)));
        (0..200_000).for_each(|key| put(&machine, key));
        let (before, again) = (machine.frozen(), machine.frozen());
        assert!(before.keys.is_shared_with(&again.keys), "a copy costs nothing");
        let pieces: Vec<_> = before.snapshot(Form::FIRST).map(|piece| piece.len()).collect();
        assert!(pieces.iter().all(|piece| *piece < 128 << 10), "each is made in one go: {:?}", pieces.iter().max());
        let bytes: usize = pieces.iter().sum();
        let look = thread::spawn(move || {
            let seen = before.keys.hash_kv(0).unwrap();
            (seen, before.snapshot(Form::FIRST).map(|piece| piece.len()).sum::<usize>())
        });
        (0..1_000).for_each(|key| put(&machine, key));
        let (seen, size) = look.join().unwrap();
        assert_eq!((seen.hash_revision, size), (200_001, bytes));
        assert_eq!(again.keys.hash_kv(0).unwrap(), seen);
        assert_eq!(machine.read(|state| state.keys.revision().0), 201_001);
    }

    /// What is compacted goes in steps, and entries between them.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_compaction_of_much_holds_up_no_entry() {
        let machine = Machine::new("3.6.0".parse().unwrap(), FEATURES, Proposals::new(MemberId(1), Starts(1)));
        (0..200_000).for_each(|_| put(&machine, 1));
        let size = |machine: &Machine| machine.read(|state| state.keys.size_bytes());
        let before = size(&machine);
        machine.apply_of_test(EntryKind::Compact(CompactionRequest { revision: 200_001, physical: false }));
        assert_eq!(size(&machine), before, "the entry itself forgets nothing");
        tokio::spawn(machine.clone().forget());
        let mut forgotten = machine.forgotten();
        let mut between = 0_u64;
        while *forgotten.borrow_and_update() < Revision(200_001) {
            put(&machine, 2);
            between += 1;
            tokio::task::yield_now().await;
        }
        assert!(between >= 10, "{between} entries were applied meanwhile");
        let left = (between + 2) * 1000;
        assert!(size(&machine) < left, "{} of {before} bytes, after {between} more", size(&machine));
    }
}

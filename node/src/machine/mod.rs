//! The state as this process has it: raft applies to it, everybody else reads, and proposers hear what came of theirs.

mod applied;
mod proposals;

use std::sync::{Arc, PoisonError, RwLock};

use proto::{LogIndex, Release};
use tokio::sync::watch;

pub use applied::Fault;
pub use proposals::{Outcome, Proposal, Proposals, Waiting};

use crate::{features::Registry, state::State};

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
    proposals: Proposals,
    registry: Registry,
    release: Release,
}

impl Machine {
    /// A machine for a member of this release, over the state of a new cluster.
    pub fn new(release: Release, registry: Registry, proposals: Proposals) -> Self {
        let (applied, cluster) = (watch::Sender::default(), watch::Sender::default());
        let shared = Shared { state: RwLock::default(), applied, cluster, proposals, registry, release };
        Self { shared: Arc::new(shared) }
    }

    /// Looks at the state; nothing is applied meanwhile, so be quick.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The last index that was applied, as it moves.
    pub fn applied(&self) -> watch::Receiver<LogIndex> {
        self.shared.applied.subscribe()
    }

    /// The last index that changed anything of the cluster, as it moves.
    pub fn cluster_changed(&self) -> watch::Receiver<LogIndex> {
        self.shared.cluster.subscribe()
    }

    /// What this source knows of features.
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// The proposals of this process that are under way.
    pub fn proposals(&self) -> &Proposals {
        &self.shared.proposals
    }
}

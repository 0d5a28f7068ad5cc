//! A running member, as those see it who serve its clients: it proposes, reads, and says how things stand.

mod admission;
mod announcing;
mod auto_compaction;
mod calling_back;
mod changing;
mod comparing;
mod counts;
mod downgrade;
mod following;
mod founding;
mod handing_over;
mod leading;
mod lease_clock;
mod leases;
mod others;
mod proposing;
mod publishing;
mod reading;
mod start;

use crate::identity::Identity;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use consensus::Group;
use proto::{LogIndex, MemberId, Term};
use tokio::{
    sync::{Mutex, mpsc, oneshot, watch},
    time::timeout,
};
use tonic::Status;

pub use comparing::Differs;
pub use counts::Counts;
pub use start::{End, Running, Setup, StartError, data_dir, start};

use crate::{
    api_error::ApiError,
    cluster::membership::Rules,
    entry::{Entry, EntryKind},
    features::Features,
    machine::Machine,
    peer::{Handshake, Links, Told, Traffic, wire},
    state::{Applied, Refusal, State},
};

/// Before somebody is asked again who did not know.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// How a member stands in the raft group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaftStatus {
    pub term: Term,
    /// Who leads, as far as it knows.
    pub leader: Option<MemberId>,
    /// The last entry that it knows to be committed.
    pub committed: LogIndex,
    pub is_learner: bool,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// A client's request (etcd, `ReqTimeout`: 5 s and two elections).
    request: Duration,
    round: Duration,
    /// A member that has answered within this is there.
    recent: Duration,
    election: Duration,
}

/// A running member. Every clone is the same.
#[derive(Clone)]
pub struct Member {
    shared: Arc<Shared>,
}

/// What its parts have in common.
struct Shared {
    identity: Arc<Identity>,
    machine: Machine,
    group: Group,
    links: Links,
    handshake: Handshake,
    limits: Limits,
    /// By which members come and go.
    rules: Rules,
    server_features: Features,
    /// One change of the members at a time is judged here.
    changing: Mutex<()>,
    clock: lease_clock::LeaseClock,
    counts: Counts,
    log_measured: Arc<wal::Measured>,
    /// It was told that it is a member no more.
    is_removed: AtomicBool,
    proposing: mpsc::Sender<proposing::Queued>,
    reading: mpsc::Sender<reading::Waiter>,
    asking: mpsc::Sender<reading::Asker>,
}

impl Shared {
    /// Whether a feature is on: one of the server's own by its flags, any other by what its cluster has decided (KEP-4647, "Interface
    /// Change for Server Code").
    fn feature_enabled(&self, name: &str) -> bool {
        let of_cluster = || self.machine.read(|state| state.cluster.is_enabled(name, self.machine.registry()));
        self.server_features.get(name).unwrap_or_else(of_cluster)
    }

    /// Ends this member, which must not go on.
    fn end(&self, told: &Told) {
        self.is_removed.fetch_or(*told == Told::Removed, Ordering::Relaxed);
        self.group.end(told.to_string());
    }

    async fn propose(&self, entry: Entry) -> Result<Applied, Refusal> {
        self.machine.read(|state| state.may_apply(entry.since()))?;
        let bytes = Bytes::from(entry.encode());
        let mut waiting = self.machine.proposals().begin(bytes.len());
        let outcome = async {
            let queued = self.proposing.send((waiting.number(), bytes)).await;
            queued.map_err(|_| Refusal::Request(ApiError::Stopped))?;
            waiting.outcome().await
        };
        match timeout(self.limits.request, outcome).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Refusal::Request(self.late())),
        }
    }

    /// Proposes what this member decides as the leader of this term. It enters the log in that term or never, and is never
    /// forwarded: what was decided then may be wrong by now (etcd issue 15247).
    async fn propose_as_leader(&self, term: u64, what: EntryKind) -> Result<Applied, Refusal> {
        let entry = Bytes::from(Entry::from(what).encode());
        let mut waiting = self.machine.proposals().begin(entry.len());
        let stopped = Refusal::Request(ApiError::Stopped);
        let bytes = self.machine.proposals().bytes(waiting.number(), &entry).ok_or(stopped)?;
        let outcome = async {
            let proposed = self.group.propose_as_leader(term, bytes).await;
            proposed.map_err(|_| {
                self.counts.proposals_failed.inc();
                Refusal::Request(ApiError::NotLeader)
            })?;
            waiting.outcome().await
        };
        match timeout(self.limits.request, outcome).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Refusal::Request(self.late())),
        }
    }

    /// What a leader answers, for as long as it leads: one that stands still answers nobody, and another may lead long
    /// before its connection is given up.
    async fn while_leads<T>(&self, leader: u64, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        let mut raft_status = self.group.raft_status();
        tokio::select! {
            answer = call => self.links.heed(leader, answer),
            _ = raft_status.wait_for(|now| now.leader != Some(leader)) => Err(Status::unavailable("it leads no more")),
        }
    }

    /// Why what came of a proposal did not come in time, as far as anybody knows.
    fn late(&self) -> ApiError {
        self.counts.proposals_failed.inc();
        match self.group.raft_status().borrow().leader {
            Some(_) => ApiError::Timeout,
            None => ApiError::TimeoutLeaderFail,
        }
    }
}

impl Member {
    pub fn identity(&self) -> &Identity {
        &self.shared.identity
    }

    pub fn machine(&self) -> &Machine {
        &self.shared.machine
    }

    /// What goes to and comes from other members.
    pub fn traffic(&self) -> &Traffic {
        self.shared.links.traffic()
    }

    /// Whether a feature is on, of either level.
    pub fn feature_enabled(&self, name: &str) -> bool {
        self.shared.feature_enabled(name)
    }

    /// Returns once its cluster has let it in.
    pub async fn is_in(&self) {
        self.shared.handshake.is_in().await;
    }

    /// What members say of themselves: this one, and the others as it has heard them.
    pub fn handshake(&self) -> &Handshake {
        &self.shared.handshake
    }

    /// What it has counted since it started.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// How long its log was being written and synced, each time.
    pub fn log_measured(&self) -> &wal::Measured {
        &self.shared.log_measured
    }

    /// Looks at the state as it is here and now; see [`Member::linearize`].
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.shared.machine.read(look)
    }

    /// A copy of the state as it is here and now, for whoever looks at much of it.
    pub fn frozen(&self) -> State {
        self.shared.machine.frozen()
    }

    /// The last applied index, as it moves.
    pub fn applied(&self) -> watch::Receiver<LogIndex> {
        self.shared.machine.applied()
    }

    pub fn raft_status(&self) -> RaftStatus {
        let raft_status = *self.shared.group.raft_status().borrow();
        let (_, committed) = self.shared.group.reach();
        RaftStatus {
            term: Term(raft_status.term),
            leader: raft_status.leader.map(MemberId),
            committed: LogIndex(committed),
            is_learner: raft_status.is_learner,
        }
    }

    /// The last entry that this member's stored snapshot holds the outcome of.
    pub fn snapshot_index(&self) -> LogIndex {
        LogIndex(self.shared.group.snapshot_index())
    }

    /// Proposes an entry and gives what came of it here, where it was applied.
    ///
    /// # Errors
    /// [`Refusal`]: what the state says against it; or that its fate is not known, in etcd's words.
    pub async fn propose(&self, entry: Entry) -> Result<Applied, Refusal> {
        self.shared.propose(entry).await
    }

    /// Returns once the state here holds everything that was acknowledged, by whomever, before this was called: a quorum
    /// has confirmed the leader, and what it had committed then is applied here (raft dissertation, section 6.4).
    ///
    /// # Errors
    /// No leader was found, or it did not answer, in time.
    pub async fn linearize(&self) -> Result<(), Refusal> {
        let (waiter, outcome) = oneshot::channel();
        let stopped = Refusal::Request(ApiError::Stopped);
        if self.shared.reading.send(waiter).await.is_err() {
            return Err(stopped);
        }
        outcome.await.map_err(|_| stopped)?.map_err(Refusal::Request)
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("identity", &self.shared.identity).finish_non_exhaustive()
    }
}

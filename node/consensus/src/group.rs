//! A member's part in its raft group.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures_util::StreamExt;
use openraft::{
    BasicNode, Instant as _, Raft,
    async_runtime::watch::WatchReceiver as _,
    errors::{ClientWriteError, Fatal, InitializeError, RaftError},
    impls::ProgressResponder,
};
use tokio::sync::watch;
use wal::Wal;

use crate::{
    answered::Answered,
    arriving::Arriving,
    format::Command,
    log_store::LogStore,
    machine::{Applier, Machine},
    network::Network,
    peers::Peers,
    promise::Promise,
    schedule::Schedule,
    settings::Settings,
    snapshots::Snapshots,
    status::{LeaderHeard, RaftStatus, watched},
    types::{Committed, Types},
};

/// A member gets as many entries in no time.
const CATCH_UP_ENTRIES: u64 = 1_000;

/// A member of a raft group, while it runs. Every clone is the same.
#[derive(Clone)]
pub struct Group {
    pub(crate) raft: Raft<Types, Applier>,
    pub(crate) snapshots: Snapshots,
    pub(crate) arriving: Arriving,
    pub(crate) log: Wal,
    pub(crate) machine: Arc<dyn Machine>,
    raft_status: watch::Receiver<RaftStatus>,
    pub(crate) leader_heard: LeaderHeard,
    pub(crate) newest_answer: Duration,
    pub(crate) answered: Answered,
    pub(crate) promise: Promise,
    /// Why it was ended, where its leader knew that it must not go on.
    pub(crate) ended: Arc<OnceLock<String>>,
}

/// Why a member cannot take part.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// The times do not fit each other.
    #[error("heartbeat and election timeout do not fit: {0}")]
    Settings(String),
    /// It has stopped.
    #[error("raft has stopped: {0}")]
    Stopped(String),
}

/// Why a proposal is not in the log, as far as this member knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// It is not: this member does not lead. It may be proposed again.
    #[error("this member does not lead")]
    NotLeader,
    /// It was, and another leader's log took the place of this one's: it may be committed yet, or never.
    #[error("leadership was lost before the entry was committed")]
    Unknown,
    /// Raft has stopped.
    #[error("raft has stopped: {0}")]
    Stopped(String),
}

fn stopped(fatal: Fatal<Types>) -> GroupError {
    GroupError::Stopped(reason(&fatal))
}

/// Why raft has stopped: what the log or the state machine says, without openraft's words for where it happened.
pub(crate) fn reason(fatal: &Fatal<Types>) -> String {
    std::error::Error::source(fatal).map_or_else(|| fatal.to_string(), ToString::to_string)
}

/// An error and what is behind it, in one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

impl Group {
    /// Starts the member of this id with the log and the state that it has, on the runtime that this is called on.
    ///
    /// # Errors
    /// [`GroupError`]: nothing was started.
    pub async fn open(
        id: u64,
        settings: Settings,
        wal: Wal,
        applier: Applier,
        peers: Arc<dyn Peers>,
    ) -> Result<Self, GroupError> {
        let config = settings.config().map_err(|error| GroupError::Settings(error.to_string()))?;
        let (snapshots, machine) = (applier.snapshots.clone(), applier.machine.clone());
        let schedule = applier.schedule.clone();
        schedule.begin(id, settings.snapshot_count);
        let has_voted = wal.vote().map_err(|error| GroupError::Stopped(error.to_string()))?.is_some();
        let (answered, promise) = (Answered::default(), Promise::of_start(has_voted, settings));
        let network = Network::new(peers, settings.patience(), answered.clone(), promise, schedule.clone());
        let raft = Raft::new(id, config, network, LogStore::new(wal.clone()), applier).await.map_err(stopped)?;
        tokio::spawn(take_snapshots(raft.clone(), schedule));
        let leader_heard = LeaderHeard::default();
        let raft_status = watched(&raft, leader_heard.clone(), settings.election);
        Ok(Self {
            raft,
            snapshots,
            arriving: Arriving::default(),
            log: wal,
            machine,
            raft_status,
            leader_heard,
            newest_answer: settings.newest_answer(),
            answered,
            promise,
            ended: Arc::default(),
        })
    }

    /// Makes the first membership of a new group, where this member has heard of none. Every founder may do it.
    ///
    /// # Errors
    /// Raft has stopped.
    pub async fn found(&self, members: &BTreeMap<u64, String>) -> Result<(), GroupError> {
        let nodes: BTreeMap<_, _> = members.iter().map(|(id, address)| (*id, BasicNode::new(address))).collect();
        match self.raft.initialize(nodes).await {
            Ok(()) | Err(RaftError::APIError(InitializeError::NotAllowed(_))) => Ok(()),
            Err(error) => Err(GroupError::Stopped(with_causes(&error))),
        }
    }

    /// Whether it has heard of a membership.
    ///
    /// # Errors
    /// Raft has stopped.
    pub async fn is_founded(&self) -> Result<bool, GroupError> {
        self.raft.is_initialized().await.map_err(stopped)
    }

    /// Proposes commands, in order. Each answer comes when its command is applied here, or is an error.
    pub async fn propose(&self, commands: Vec<Bytes>) -> Vec<Result<(), ProposeError>> {
        let count = commands.len();
        let stopped = |fatal: Fatal<Types>| ProposeError::Stopped(reason(&fatal));
        let mut answers = match self.raft.client_write_many(commands.into_iter().map(Command::new)).await {
            Ok(answers) => answers,
            Err(fatal) => return vec![Err(stopped(fatal)); count],
        };
        let mut outcomes = Vec::with_capacity(count);
        while let Some(answer) = answers.next().await {
            outcomes.push(match answer {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(ClientWriteError::ForwardToLeader(_))) => Err(ProposeError::NotLeader),
                Ok(Err(_)) => Err(ProposeError::Unknown),
                Err(fatal) => Err(stopped(fatal)),
            });
        }
        // It ends early when raft does.
        outcomes.resize(count, Err(ProposeError::Unknown));
        outcomes
    }

    /// Proposes what this member decides as the leader of this term: it enters the log in that term or never. A leader that
    /// stood still finds here that another has taken over, however late it hears of it: what it puts into its own log is of
    /// a term that is over, and committed by nobody. Answered as by [`Group::propose`].
    ///
    /// # Errors
    /// [`ProposeError`]
    pub async fn propose_as_leader(&self, term: u64, command: Bytes) -> Result<(), ProposeError> {
        let stopped = |fatal: Fatal<Types>| ProposeError::Stopped(reason(&fatal));
        let (responder, answer) = ProgressResponder::complete_only();
        let write = self.raft.write(Command::new(command)).with_leader(Committed { term }).responder(responder);
        write.await.map_err(stopped)?;
        match answer.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(ClientWriteError::ForwardToLeader(_))) => Err(ProposeError::NotLeader),
            Ok(Err(_)) | Err(_) => Err(ProposeError::Unknown),
        }
    }

    /// How it stands, as that changes.
    pub fn raft_status(&self) -> watch::Receiver<RaftStatus> {
        self.raft_status.clone()
    }

    /// The last entry of its log, and the last that it knows to be committed.
    pub fn reach(&self) -> (u64, u64) {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        (metrics.last_log_index.unwrap_or_default(), metrics.local_committed.map_or(0, |id| id.index))
    }

    /// The last entry of its log, with all that was proposed here before this is asked.
    ///
    /// # Errors
    /// Raft has stopped.
    pub async fn last_index(&self) -> Result<u64, GroupError> {
        self.raft.with_raft_state(|state| state.log_ids.last().map_or(0, |id| id.index)).await.map_err(stopped)
    }

    /// The last entry that its stored snapshot holds the outcome of; 0 where there is none.
    pub fn snapshot_index(&self) -> u64 {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        metrics.snapshot.map_or(0, |id| id.index)
    }

    /// Begins to take a snapshot of what is applied now, unless one is under way.
    ///
    /// # Errors
    /// Raft has stopped.
    pub async fn take_snapshot(&self) -> Result<(), GroupError> {
        self.raft.trigger().snapshot().await.map_err(stopped)
    }

    /// The members as this one has them, each with where it is reached.
    pub fn members(&self) -> BTreeMap<u64, String> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        metrics.membership_config.nodes().map(|(id, node)| (*id, node.addr.clone())).collect()
    }

    /// At the leader: the voters that could take over now, the one with most of the log first. Each has answered within
    /// this time, and lacks no more than it gets while it is asked: it waits for the rest before it stands for election.
    pub fn successors(&self, recent: Duration) -> Vec<u64> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let last = metrics.last_log_index.unwrap_or_default();
        let matched = |id: &u64| Some(metrics.replication.as_ref()?.get(id)?.as_ref()?.index);
        let heard = |id: &u64| Some((*metrics.heartbeat.as_ref()?.get(id)?.as_ref()?).elapsed());
        let others = metrics.membership_config.voter_ids().filter(|id| *id != metrics.id);
        let fit = others.filter_map(|id| {
            let (matched, age) = (matched(&id)?, heard(&id)?);
            (age <= recent && matched + CATCH_UP_ENTRIES >= last).then_some((std::cmp::Reverse(matched), age, id))
        });
        let mut fit: Vec<_> = fit.collect();
        fit.sort();
        fit.into_iter().map(|(.., id)| id).collect()
    }

    /// Asks a voter to take over (raft dissertation, section 3.10). Until it leads, nothing can be proposed here; there is
    /// no way back but an election.
    ///
    /// # Errors
    /// Raft has stopped.
    pub async fn transfer(&self, to: u64) -> Result<(), GroupError> {
        self.raft.trigger().transfer_leader(to).await.map_err(stopped)
    }

    /// Whether it stands for election. It does not before this was said once.
    pub fn may_stand(&self, may: bool) {
        self.raft.runtime_config().elect(may);
    }

    /// Forgets the log up to this entry, where the stored snapshot holds its outcome. Whether it is so; a member that is being sent
    /// these entries is waited for.
    ///
    /// # Errors
    /// Raft has stopped.
    pub async fn forget_to(&self, index: u64) -> Result<bool, GroupError> {
        let is_forgotten = || self.raft.metrics().borrow_watched().purged.is_some_and(|id| id.index >= index);
        if !is_forgotten() {
            self.raft.trigger().purge_log(index).await.map_err(stopped)?;
        }
        Ok(is_forgotten())
    }

    /// Tries at once again to reach a member that was away.
    ///
    /// # Errors
    /// Raft has stopped.
    pub async fn is_back(&self, member: u64) -> Result<(), GroupError> {
        self.raft.trigger().reset_backoff([member]).await.map_err(stopped)
    }

    /// Why it has stopped, once it has.
    pub fn fault(&self) -> Option<String> {
        if let Some(why) = self.ended.get() {
            return Some(why.clone());
        }
        let metrics = self.raft.metrics();
        let state = metrics.borrow_watched().running_state.clone();
        state.err().map(|fatal| reason(&fatal))
    }

    /// Ends it; what is in the log stays.
    pub async fn shutdown(&self) {
        if let Err(error) = self.raft.shutdown().await {
            tracing::warn!(%error, "raft did not end well");
        }
    }
}

/// Takes a snapshot whenever one is due, for as long as raft runs.
async fn take_snapshots(raft: Raft<Types, Applier>, schedule: Arc<Schedule>) {
    loop {
        schedule.due().await;
        if raft.trigger().snapshot().await.is_err() {
            return;
        }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("standing", &*self.raft_status.borrow()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use openraft::{StorageError, errors::ErrorSource};

    use super::*;
    use crate::types::StorageFault;

    #[test]
    fn who_has_stopped_says_why_and_nothing_of_openraft() {
        let error = io::Error::other("cannot write 7.wal: File too large");
        let fault = StorageError::write_state_machine(StorageFault::from_error(&error));
        assert_eq!(reason(&Fatal::StorageError(fault)), "cannot write 7.wal: File too large");
        assert_eq!(reason(&Fatal::Panicked), "panicked");
    }
}

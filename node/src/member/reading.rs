//! Linearizable reads: one quorum round for all that wait, then until what it says is applied here (raft dissertation,
//! section 6.4). Who comes while a round is under way waits for the next: it must have begun after the read did. So it is
//! twice: each member asks the leader once for all of its readers, and the leader asks a majority once for all members.

use std::{sync::Arc, time::Duration};

use consensus::ReadError;
use proto::LogIndex;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout, timeout_at},
};
use tonic::Status;

use super::{Shared, wire};
use crate::api_error::ApiError;

/// Before the same leader is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// As many wait for one round.
const MOST: usize = 65_536;

pub(super) type Waiter = oneshot::Sender<Result<(), ApiError>>;

/// One that waits for a round of this member as the leader.
pub(super) type Asker = oneshot::Sender<Result<u64, ReadError>>;

/// Makes rounds as the leader, as long as anybody can ask.
pub(super) async fn lead(shared: Arc<Shared>, mut asking: mpsc::Receiver<Asker>) {
    let mut askers = Vec::new();
    while asking.recv_many(&mut askers, MOST).await > 0 {
        // One that were never answered would stand in the way of all after it.
        let round = timeout(2 * shared.limits.round, shared.group.read_index(shared.limits.round));
        let index = round.await.unwrap_or(Err(ReadError::NoQuorum));
        for asker in askers.drain(..) {
            let _ = asker.send(index.clone());
        }
    }
}

/// Finds out for this member's readers how far they must wait, as long as anybody can.
pub(super) async fn run(shared: Arc<Shared>, mut waiting: mpsc::Receiver<Waiter>) {
    let mut waiters = Vec::new();
    while waiting.recv_many(&mut waiters, MOST).await > 0 {
        let outcome = round(&shared).await;
        for waiter in waiters.drain(..) {
            // Who is gone does not wait.
            let _ = waiter.send(outcome);
        }
    }
}

async fn round(shared: &Shared) -> Result<(), ApiError> {
    let deadline = Instant::now() + shared.limits.request;
    let mut raft_status = shared.group.raft_status();
    let index = loop {
        let leader = raft_status.borrow_and_update().leader;
        let index = match leader {
            Some(leader) if leader == shared.identity.member.0 => shared.read_index_here().await,
            Some(leader) => read_index_there(shared, leader).await,
            None => Err(Status::unavailable("no leader")),
        };
        match index {
            Ok(index) => break LogIndex(index),
            Err(status) => tracing::trace!(%status, "no quorum round"),
        }
        if Instant::now() >= deadline {
            let (counts, is_led) = (&shared.counts, leader.is_some());
            (if is_led { &counts.slow_read_indexes } else { &counts.read_indexes_failed }).inc();
            return Err(if is_led { ApiError::Timeout } else { ApiError::TimeoutLeaderFail });
        }
        let _ = timeout_at(deadline.min(Instant::now() + RETRY_INTERVAL), raft_status.changed()).await;
    };
    let mut applied = shared.machine.applied();
    match timeout_at(deadline, applied.wait_for(|applied| *applied >= index)).await {
        Ok(Ok(_)) => Ok(()),
        _ => Err(ApiError::TimeoutWaitAppliedIndex),
    }
}

impl Shared {
    /// How far a read must wait that comes now, as the leader: after a quorum round, or at once while its lease runs.
    pub(super) async fn read_index_here(&self) -> Result<u64, Status> {
        let (asker, index) = oneshot::channel();
        let stopped = || Status::unavailable("the member stops");
        self.asking.send(asker).await.map_err(|_| stopped())?;
        index.await.map_err(|_| stopped())?.map_err(|error| Status::unavailable(error.to_string()))
    }
}

async fn read_index_there(shared: &Shared, leader: u64) -> Result<u64, Status> {
    let peer = shared.peer(leader).ok_or_else(|| Status::unavailable("a leader that is no member"))?;
    let request = shared.links.call(leader, wire::Nothing {});
    let mut client = shared.links.other(&peer)?;
    let asked = shared.while_leads(leader, client.read_index(request));
    let answer = tokio::time::timeout(2 * shared.limits.round, asked).await;
    let answer = answer.map_err(|_| Status::unavailable("the leader does not answer"))??;
    shared.links.answerer(leader, &answer)?;
    answer.into_inner().carried().map(|wire::ReadAt { index }| index)
}

//! Proposals on their way into the log: in batches, to whoever leads, again and again until this member's own state
//! machine has seen them or nobody waits any more. That a proposal is sent twice does not matter: it is applied once.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use consensus::{Peer, ProposeError};
use proto::MemberId;
use tokio::sync::{Semaphore, mpsc};

use super::{Shared, wire};

/// As many go into one batch,
const BATCH: usize = 1024;
/// and so many bytes, or one that is larger: what is copied and sent at once holds up all that comes after it.
const BATCH_BYTES: usize = 2 << 20;
/// As many batches are under way at once.
const UNDER_WAY: usize = 8;
/// Before the same leader is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// One that waits, with its entry.
pub(super) type Queued = (u64, Bytes);

/// Sends what is queued, as long as anybody can queue.
pub(super) async fn run(shared: Arc<Shared>, mut queue: mpsc::Receiver<Queued>) {
    let room = Arc::new(Semaphore::new(UNDER_WAY));
    let mut taken = Vec::new();
    while let Ok(permit) = room.clone().acquire_owned().await {
        if taken.is_empty() && queue.recv_many(&mut taken, BATCH).await == 0 {
            return;
        }
        let later = taken.split_off(length_of_batch(&taken));
        let sending = send(shared.clone(), std::mem::replace(&mut taken, later));
        tokio::spawn(async move {
            sending.await;
            drop(permit);
        });
    }
}

/// How many of them go into the next batch; the first one always does.
fn length_of_batch(queued: &[Queued]) -> usize {
    let mut bytes = 0;
    let fits = |(_, entry): &&Queued| {
        bytes += entry.len();
        bytes <= BATCH_BYTES
    };
    queued.iter().take_while(fits).count().max(1)
}

async fn send(shared: Arc<Shared>, mut batch: Vec<Queued>) {
    let mut raft_status = shared.group.raft_status();
    loop {
        let proposals = shared.machine.proposals();
        let mut bytes = Vec::with_capacity(batch.len());
        batch.retain(|(number, entry)| proposals.bytes(*number, entry).map(|one| bytes.push(one)).is_some());
        if batch.is_empty() {
            return;
        }
        let leader = raft_status.borrow_and_update().leader;
        let again = match leader {
            Some(leader) if leader == shared.identity.member.0 => Some(shared.propose_here(bytes).await),
            Some(leader) => propose_there(&shared, leader, bytes).await,
            None => None,
        };
        // Where nobody can say, all that still wait are sent again.
        if let Some(again) = again {
            let mut places = 0..;
            batch.retain(|_| places.next().is_some_and(|place| again.contains(&place)));
        }
        if !batch.is_empty() {
            let _ = tokio::time::timeout(RETRY_INTERVAL, raft_status.changed()).await;
        }
    }
}

impl Shared {
    /// Puts proposals into the log here. The places of those that are to be sent again.
    pub(super) async fn propose_here(&self, proposals: Vec<Bytes>) -> Vec<u32> {
        let outcomes = self.group.propose(proposals).await;
        let refused = outcomes.iter().enumerate().filter(|(_, outcome)| outcome.is_err());
        if let Some(Err(ProposeError::Stopped(why))) = outcomes.iter().find(|outcome| outcome.is_err()) {
            tracing::debug!(why, "a proposal was not taken");
        }
        refused.map(|(at, _)| at as u32).collect()
    }

    pub(super) fn peer(&self, id: u64) -> Option<Peer> {
        self.group.members().remove(&id).map(|address| Peer { id, address })
    }
}

async fn propose_there(shared: &Shared, leader: u64, proposals: Vec<Bytes>) -> Option<Vec<u32>> {
    let peer = shared.peer(leader)?;
    let mut client = shared.links.other(&peer).ok()?;
    let bytes = proposals.iter().map(|proposal| proposal.len() as u64).sum();
    shared.links.traffic().of(MemberId(leader)).sent_bytes.add(bytes);
    let request =
        shared.links.call(leader, wire::Proposals { proposals: proposals.into_iter().map(wire::Frame::of).collect() });
    let asked = shared.while_leads(leader, client.propose(request));
    let answer = tokio::time::timeout(shared.limits.request, asked).await.ok()?;
    let answer = answer.and_then(|answer| {
        shared.links.answerer(leader, &answer)?;
        answer.into_inner().carried().map(|wire::Proposed { again }| again)
    });
    answer.inspect_err(|status| tracing::debug!(%status, "proposals did not get to the leader")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_bounded_by_bytes_but_for_one_that_is_larger() {
        for (lengths, expected) in [
            (&[1, 1, 1][..], 3),
            (&[BATCH_BYTES], 1),
            (&[BATCH_BYTES, 1], 1),
            (&[BATCH_BYTES + 1, 1], 1),
            (&[BATCH_BYTES / 2, BATCH_BYTES / 2, 1], 2),
        ] {
            let queued: Vec<_> = lengths.iter().map(|length| (7, Bytes::from(vec![0; *length]))).collect();
            assert_eq!(length_of_batch(&queued), expected, "{lengths:?}");
        }
    }
}

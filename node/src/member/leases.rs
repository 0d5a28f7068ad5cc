//! What clients ask of leases that only the leader knows.

use proto::{
    LeaseId,
    etcdserverpb::{LeaseCheckpoint, LeaseCheckpointRequest},
};
use tokio::time::{Instant, sleep_until};
use tonic::{Code, Status};

use super::{Member, Shared, wire};
use crate::{api_error::ApiError, entry::EntryKind, features::LEASE_CHECKPOINT, lease::Leases, state::Refusal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Renew,
    Left,
}

impl Shared {
    /// Renews a lease, as the leader: not before it may read as one, by a quorum round or by its lease as the leader.
    pub(super) async fn renew_here(&self, lease: LeaseId) -> Result<i64, Status> {
        let term = self.group.raft_status().borrow().term;
        let known = self.lease(lease).await?;
        let Some((granted_s, is_noted)) = known else { return Ok(0) };
        // Another leader would give it what was written down before, where that counts.
        if is_noted && self.feature_enabled(LEASE_CHECKPOINT) {
            let checkpoints = vec![LeaseCheckpoint { id: lease.0, remaining_ttl: 0 }];
            let clear = EntryKind::LeaseCheckpoint(LeaseCheckpointRequest { checkpoints });
            self.propose_as_leader(term, clear).await.map_err(|error| Status::unavailable(error.to_string()))?;
        }
        // One that has ended meanwhile is unknown to the clock, as a new one is; the state tells them apart.
        let renewed = self.machine.read(|state| {
            let there = state.keys.leases().get(lease);
            let renew = |there| {
                self.clock.tell_apart(lease, there);
                self.clock.renew(lease, granted_s)
            };
            there.map(renew).transpose()
        });
        let is_renewed = renewed?.unwrap_or(false);
        if is_renewed {
            self.counts.leases_renewed.inc();
        }
        Ok(if is_renewed { granted_s } else { 0 })
    }

    /// What a lease has left, as the leader; -1 where there is none.
    pub(super) async fn left_here(&self, lease: LeaseId) -> Result<i64, Status> {
        let Some((granted_s, _)) = self.lease(lease).await? else { return Ok(-1) };
        self.machine.read(|state| state.keys.leases().get(lease).map(|there| self.clock.tell_apart(lease, there)));
        Ok(self.clock.left(lease, granted_s)?)
    }

    async fn lease(&self, lease: LeaseId) -> Result<Option<(i64, bool)>, Status> {
        let index = self.read_index_here().await?;
        let mut applied = self.machine.applied();
        let _ = applied.wait_for(|applied| applied.0 >= index).await;
        let of = |lease: &crate::lease::Lease| (lease.granted_s(), lease.checkpointed_s() > 0);
        Ok(self.machine.read(|state| state.keys.leases().get(lease).map(of)))
    }

    async fn ask_leader(&self, lease: LeaseId, ask: Ask) -> Result<i64, Status> {
        let leader = self.group.raft_status().borrow().leader;
        let leader = leader.ok_or_else(|| Status::unavailable("no leader"))?;
        if leader == self.identity.member.0 {
            return match ask {
                Ask::Renew => self.renew_here(lease).await,
                Ask::Left => self.left_here(lease).await,
            };
        }
        let peer = self.peer(leader).ok_or_else(|| Status::unavailable("a leader that is no member"))?;
        let question = wire::Frame::carrying(&wire::LeaseId { id: lease.0 });
        let (mut client, request) = (self.links.other(&peer)?, self.links.call(leader, question));
        let asked = async {
            match ask {
                Ask::Renew => client.renew(request).await,
                Ask::Left => client.left(request).await,
            }
        };
        let answer = self.while_leads(leader, asked).await?;
        self.links.answerer(leader, &answer)?;
        answer.into_inner().carried().map(|wire::LeaseTime { seconds }| seconds)
    }

    /// Asks whoever leads until one answers; neither question changes anything that a second one would not.
    async fn ask_until(&self, lease: LeaseId, ask: Ask) -> Result<i64, Refusal> {
        let deadline = Instant::now() + self.limits.request;
        loop {
            let again = Instant::now() + super::RETRY_INTERVAL;
            match tokio::time::timeout_at(deadline, self.ask_leader(lease, ask)).await {
                Ok(Ok(seconds)) => return Ok(seconds),
                Ok(Err(status)) if status.code() == Code::Unavailable && again < deadline => sleep_until(again).await,
                _ => return Err(Refusal::Request(ApiError::Timeout)),
            }
        }
    }
}

impl Member {
    /// Gives a lease its whole time again, at the leader, once that may read as one. The seconds.
    ///
    /// # Errors
    /// There is no such lease, or no leader.
    pub async fn renew(&self, lease: LeaseId) -> Result<i64, Refusal> {
        match self.shared.ask_until(lease, Ask::Renew).await? {
            0 => Err(Refusal::Request(ApiError::LeaseNotFound)),
            seconds => Ok(seconds),
        }
    }

    /// The seconds that a lease has left, as the leader knows; -1 where there is none.
    ///
    /// # Errors
    /// There is no leader.
    pub async fn left(&self, lease: LeaseId) -> Result<i64, Refusal> {
        self.shared.ask_until(lease, Ask::Left).await
    }

    /// These leases, the next to end first where this member leads and knows (etcd, `leasesByExpiry`).
    pub fn in_order(&self, leases: &Leases) -> Vec<LeaseId> {
        self.shared.clock.in_order(leases)
    }
}

//! etcd's `Lease`.

use futures_util::stream::{self, BoxStream};
use proto::{
    LeaseId,
    etcdserverpb::{
        LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseLeasesRequest,
        LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse, LeaseStatus, LeaseTimeToLiveRequest,
        LeaseTimeToLiveResponse, lease_server::Lease,
    },
};
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::{admission::wants_leader, context::ServiceContext, quota::Cost, random};
use crate::{
    api_error::ApiError,
    entry::EntryKind,
    lease::least_ttl_s,
    state::{Refusal, State},
};

#[async_trait]
impl Lease for ServiceContext {
    /// What depends on this member, the id and the least time, is settled before it is proposed.
    async fn lease_grant(&self, request: Request<LeaseGrantRequest>) -> Result<Response<LeaseGrantResponse>, Status> {
        let (metadata, _, mut request) = request.into_parts();
        let requires = self.admit(&metadata).await?;
        self.check_room(Cost::LEASE).await?;
        // Positive, as clients expect an id to be; 0 is none.
        while request.id == 0 {
            request.id = (random::number() >> 1) as i64;
        }
        request.ttl = request.ttl.max(least_ttl_s(self.options.election_timeout));
        self.outcome(self.propose_request(requires, request, EntryKind::LeaseGrant).await?)
    }

    async fn lease_revoke(
        &self,
        request: Request<LeaseRevokeRequest>,
    ) -> Result<Response<LeaseRevokeResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata).await?;
        self.check_room(Cost::NONE).await?;
        self.outcome(self.propose_request(requires, request, EntryKind::LeaseRevoke).await?)
    }

    type LeaseKeepAliveStream = BoxStream<'static, Result<LeaseKeepAliveResponse, Status>>;

    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<LeaseKeepAliveRequest>>,
    ) -> Result<Response<Self::LeaseKeepAliveStream>, Status> {
        let wants_leader = wants_leader(request.metadata());
        let requires = self.admit(request.metadata()).await?;
        if !requires.is_empty() {
            self.read(&requires, |_| Ok(())).await?;
        }
        let alive = KeepAlive { context: self.clone(), requests: request.into_inner(), wants_leader };
        Ok(Response::new(Box::pin(stream::unfold(Some(alive), KeepAlive::step))))
    }

    async fn lease_time_to_live(
        &self,
        request: Request<LeaseTimeToLiveRequest>,
    ) -> Result<Response<LeaseTimeToLiveResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata).await?;
        let left = match self.member.left(LeaseId(request.id)).await {
            Ok(left) => left,
            Err(Refusal::Request(ApiError::LeaseNotFound)) => -1,
            Err(other) => return Err(other.into()),
        };
        let found = self.read(&requires, |state| Ok(state.keys.lease_time_to_live(&request, left))).await?;
        self.answer(found)
    }

    async fn lease_leases(
        &self,
        request: Request<LeaseLeasesRequest>,
    ) -> Result<Response<LeaseLeasesResponse>, Status> {
        let requires = self.admit(request.metadata()).await?;
        let look = |state: &State| Ok((state.keys.header(), state.keys.leases().clone()));
        let (header, leases) = self.read(&requires, look).await?;
        let leases = self.member.in_order(&leases).into_iter().map(|id| LeaseStatus { id: id.0 }).collect();
        self.answer(LeaseLeasesResponse { header, leases })
    }
}

/// A stream of keep-alives: one at a time is renewed, and no answer is kept for a client that does not read.
struct KeepAlive {
    context: ServiceContext,
    requests: Streaming<LeaseKeepAliveRequest>,
    wants_leader: bool,
}

impl KeepAlive {
    /// The next answer; the last one is an error.
    async fn step(alive: Option<Self>) -> Option<(Result<LeaseKeepAliveResponse, Status>, Option<Self>)> {
        let mut alive = alive?;
        let Self { context, requests, wants_leader } = &mut alive;
        let answered = tokio::select! {
            answered = context.keep_alive(requests) => answered.transpose()?,
            () = context.stopping.cancelled() => Err(ApiError::Stopped.into()),
            () = context.leader_lost(*wants_leader) => Err(ApiError::NoLeader.into()),
        };
        let rest = answered.is_ok().then_some(alive);
        Some((answered, rest))
    }
}

impl ServiceContext {
    /// Renews the next lease that is asked for; `None` when the client has no more to ask.
    async fn keep_alive(
        &self,
        requests: &mut Streaming<LeaseKeepAliveRequest>,
    ) -> Result<Option<LeaseKeepAliveResponse>, Status> {
        let Some(LeaseKeepAliveRequest { id }) = requests.message().await? else { return Ok(None) };
        // Before the renewal, so that no header is newer than the moment it speaks of (etcd, `leaseKeepAlive`).
        let header = self.newest_header();
        let ttl = match self.member.renew(LeaseId(id)).await {
            Ok(ttl) => ttl,
            Err(Refusal::Request(ApiError::LeaseNotFound)) => 0,
            Err(other) => return Err(other.into()),
        };
        Ok(Some(LeaseKeepAliveResponse { header, id, ttl }))
    }
}

//! Asks one member, at one address.
//!
//! Every answer is believed only with the member's own id on it: behind one address there may be a balancer, or today
//! somebody else.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use proto::{
    ClusterId, LogIndex, MemberId, Revision, Term,
    batonpb::{ListRequest, members_client::MembersClient},
    etcdserverpb::{
        FeatureGateStatusRequest, MemberListRequest, RangeRequest, ResponseHeader, StatusRequest, StatusResponse,
        cluster_client::ClusterClient, kv_client::KvClient, maintenance_client::MaintenanceClient,
    },
};
use tonic::Code;

use super::{
    access::{Access, CALL},
    directory::Listed,
    error::CallError,
    health::Read,
    leader::Statement,
    listed,
    view::JoinTerms,
};
use crate::words::said;

/// How long to wait before a read that found no leader is made again.
const READ_RETRY_AFTER: Duration = Duration::from_millis(50);

/// How large an answer may be that many members are asked for at the same time, in bytes.
pub(super) const MAX_MESSAGE: usize = 1024 * 1024;
/// How many errors of a `Status` are read, alarms among them.
const MAX_ERRORS: usize = 64;

/// A member's `Status`.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub id: MemberId,
    pub status: StatusResponse,
}

impl Seen {
    pub(super) fn applied(&self) -> LogIndex {
        LogIndex(self.status.raft_applied_index)
    }

    pub(super) fn commit(&self) -> LogIndex {
        LogIndex(self.status.raft_index)
    }

    pub(super) fn statement(&self) -> Statement {
        let leader = Some(MemberId(self.status.leader)).filter(|id| id.0 != 0);
        Statement { term: Term(self.status.raft_term), leader }
    }

    pub(super) fn revision(&self) -> Revision {
        Revision(self.status.header.as_ref().map_or(0, |header| header.revision))
    }
}

impl Access {
    /// Whoever answers at this address, and how it is.
    pub(super) async fn status(&self, address: &str) -> Result<Seen, CallError> {
        let status = self
            .ask(address, StatusRequest {}, |channel, request| async move {
                MaintenanceClient::new(channel).max_decoding_message_size(MAX_MESSAGE).status(request).await
            })
            .await?;
        let (id, _) = whose(status.header.as_ref()).ok_or_else(|| nameless(address))?;
        Ok(Seen { id, status: shortened(status) })
    }

    /// How this member is, from nobody but itself.
    pub(super) async fn status_of(&self, member: MemberId, address: &str) -> Result<Seen, CallError> {
        let seen = self.status(address).await?;
        if seen.id == member { Ok(seen) } else { Err(another(address, seen.id)) }
    }

    /// The membership as this address has it, without a round of the quorum, as far as it is within bounds.
    pub(super) async fn members(&self, address: &str) -> Result<Vec<Listed>, CallError> {
        let list = self
            .ask(address, MemberListRequest { linearizable: false }, |channel, request| async move {
                ClusterClient::new(channel).max_decoding_message_size(MAX_MESSAGE).member_list(request).await
            })
            .await?;
        listed::members(list.members, self.has_tls()).map_err(CallError::Unusable)
    }

    /// Which features are on for the whole cluster, as this member has it once it has applied what was committed before;
    /// `None` from a server that has no gates.
    pub(super) async fn features_on(
        &self,
        member: MemberId,
        address: &str,
    ) -> Result<Option<BTreeMap<String, bool>>, CallError> {
        let answer = self.ask(address, FeatureGateStatusRequest::of([""; 0]), |channel, request| async move {
            MaintenanceClient::new(channel).feature_gate_status(request).await
        });
        let status = match answer.await {
            Ok(status) => status,
            Err(error) if error.code() == Some(Code::Unimplemented) => return Ok(None),
            Err(error) => return Err(error),
        };
        match whose(status.header.as_ref()) {
            Some((id, _)) if id == member => {}
            Some((id, _)) => return Err(another(address, id)),
            None => return Err(nameless(address)),
        }
        Ok(Some(status.by_name()))
    }

    /// Beside whom this member takes part, as it says itself; `None` from a server that does not tell, or not to this user.
    pub(super) async fn join_terms(&self, member: MemberId, address: &str) -> Option<JoinTerms> {
        let list = self.ask(address, ListRequest {}, |channel, request| async move {
            MembersClient::new(channel).max_decoding_message_size(MAX_MESSAGE).list(request).await
        });
        let list = list.await.ok()?;
        let own = list.members.into_iter().find(|listed| listed.id == member.0)?;
        let (lowest_protocol, highest_protocol) = (own.lowest_protocol, own.highest_protocol);
        let is_its_own = whose(list.header.as_ref()).is_some_and(|(id, _)| id == member);
        is_its_own.then(|| JoinTerms { lowest_protocol, highest_protocol, is_strict: own.join_policy == "strict" })
    }

    /// A linearizable read of `key` through this member. That there is no leader at the moment is no answer yet: it is
    /// asked again until the deadline of one call.
    pub(super) async fn read_through(&self, member: MemberId, address: &str, key: &str) -> Read {
        let deadline = Instant::now() + CALL;
        loop {
            match self.linearizable(address, key).await {
                Ok(header) => return whose_read(member, address, header.as_ref()),
                Err(error) if error.code() == Some(Code::PermissionDenied) => return Read::Answered,
                Err(error)
                    if error.code() == Some(Code::Unavailable) && Instant::now() + READ_RETRY_AFTER < deadline =>
                {
                    tokio::time::sleep(READ_RETRY_AFTER).await;
                }
                Err(error) => return Read::Failed(error.to_string()),
            }
        }
    }

    /// The header of a linearizable read through this address.
    pub(super) async fn linearizable(&self, address: &str, key: &str) -> Result<Option<ResponseHeader>, CallError> {
        let question = RangeRequest { key: key.into(), keys_only: true, ..Default::default() };
        let answer = self
            .ask(address, question, |channel, request| async move { KvClient::new(channel).range(request).await })
            .await?;
        Ok(answer.header)
    }
}

/// Without what is too long for a sentence: an answer may have some MiB of words.
fn shortened(mut status: StatusResponse) -> StatusResponse {
    status.errors.truncate(MAX_ERRORS);
    status.errors.iter_mut().chain([&mut status.version]).for_each(|words| {
        words.truncate(said(words).len());
    });
    status
}

/// The member and cluster that a header names.
pub(super) fn whose(header: Option<&ResponseHeader>) -> Option<(MemberId, ClusterId)> {
    let header = header?;
    (header.member_id != 0).then_some((MemberId(header.member_id), ClusterId(header.cluster_id)))
}

fn whose_read(member: MemberId, address: &str, header: Option<&ResponseHeader>) -> Read {
    match whose(header) {
        Some((id, _)) if id == member => Read::Answered,
        Some((id, _)) => Read::Failed(another(address, id).to_string()),
        None => Read::Failed(nameless(address).to_string()),
    }
}

/// The refusal of an answer from somebody else.
pub(super) fn another(address: &str, id: MemberId) -> CallError {
    CallError::Unusable(format!("{address} is answered by member {id}: this one needs an address of its own"))
}

pub(super) fn nameless(address: &str) -> CallError {
    CallError::Unusable(format!("{address} answers without a member id"))
}

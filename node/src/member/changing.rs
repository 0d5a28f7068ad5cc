//! Changes of who the members are: asked of any member, judged and proposed by the one that leads (etcd, `AddMember` and the like in
//! server/etcdserver/server.go).

use std::hash::{BuildHasher, RandomState};

use consensus::{ChangeError, Members, ProposeError};
use proto::{LogIndex, MemberId};
use tokio::time::{Instant, timeout, timeout_at};
use tonic::{Code, Status};

use super::{Member, RETRY_INTERVAL, Shared, wire};
use crate::{
    api_error::ApiError,
    cluster::{
        Cluster,
        membership::{Change, Lags, Membership},
    },
};

/// A change that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The entry; none where it waits for the member that it adds.
    index: Option<LogIndex>,
    /// The member that was added.
    pub added: Option<MemberId>,
}

/// Why there is no change.
enum Failed {
    /// Nothing was proposed: it may be asked for again.
    Again,
    /// It may be made yet, or never. Asked for again, it is made or refused for having been made.
    Unknown,
    Refused(Status),
}

impl From<ApiError> for Failed {
    fn from(error: ApiError) -> Self {
        Self::Refused(error.into())
    }
}

impl Member {
    /// Changes who the members are. Returns once this member has applied it.
    ///
    /// # Errors
    /// In etcd's words.
    pub async fn change(&self, change: &Change) -> Result<Changed, Status> {
        let shared = &self.shared;
        let deadline = Instant::now() + shared.limits.request;
        let mut raft_status = shared.group.raft_status();
        let mut may_be_made = false;
        loop {
            let leader = raft_status.borrow_and_update().leader;
            let outcome = match leader {
                Some(leader) if leader == shared.identity.member.0 => self.change_here(change).await,
                Some(leader) => shared.change_there(leader, change).await,
                None => Err(Failed::Again),
            };
            match outcome {
                // It hears nothing of its own end.
                Ok(changed) if *change == Change::Remove(shared.identity.member) => return Ok(changed),
                Ok(changed) => {
                    let mut applied = shared.machine.applied();
                    let is_applied = applied.wait_for(|applied| changed.index.is_none_or(|index| *applied >= index));
                    let late = |_| ApiError::TimeoutWaitAppliedIndex;
                    let _ = timeout_at(deadline, is_applied).await.map_err(late)?;
                    return Ok(changed);
                }
                Err(Failed::Refused(status)) if may_be_made && status.message() == made(change).to_string() => {
                    self.linearize().await?;
                    return Ok(Changed {
                        index: None,
                        added: shared.machine.read(|state| added(&state.cluster, change)),
                    });
                }
                Err(Failed::Refused(status)) => return Err(status),
                Err(_) if Instant::now() >= deadline => return Err(shared.late().into()),
                Err(failed) => {
                    may_be_made |= matches!(failed, Failed::Unknown);
                    drop(timeout(RETRY_INTERVAL, raft_status.changed()).await);
                }
            }
        }
    }

    /// The same as the leader.
    async fn change_here(&self, change: &Change) -> Result<Changed, Failed> {
        let shared = &self.shared;
        let own = shared.identity.member;
        let _turn = shared.changing.lock().await;
        let now = *shared.group.raft_status().borrow();
        // What was proposed before it must be applied: it is judged by that.
        let index = LogIndex(shared.read_index_here().await.map_err(|_| Failed::Again)?);
        let is_applied = async { shared.machine.applied().wait_for(|applied| *applied >= index).await.is_ok() };
        if now.leader != Some(own.0) || !timeout(shared.limits.round, is_applied).await.unwrap_or(false) {
            return Err(Failed::Again);
        }
        let seen = shared.group.members_at();
        if seen.index() > index.0 {
            return Err(Failed::Again);
        }
        let new = MemberId(RandomState::new().hash_one(seen.index()).max(1));
        let lags = shared.lags(&seen.members);
        let to = shared.machine.read(|state| state.cluster.changed(change, new, shared.rules, &lags))?;
        if *change == Change::Remove(own) {
            // It goes without a gap: who takes over carries it out.
            self.step_down().await.map_err(Status::from).map_err(Failed::Refused)?;
            return Err(Failed::Again);
        }
        let added = matches!(change, Change::Add { .. }).then_some(new);
        tracing::info!(?change, added = added.map(|id| id.to_string()), "changes the members");
        match shared.group.change_members(now.term, &seen, &members(&to, &seen.members)).await {
            Ok(index) => Ok(Changed { index: index.map(LogIndex), added }),
            Err(ChangeError::Overtaken | ChangeError::Propose(ProposeError::NotLeader)) => Err(Failed::Again),
            Err(ChangeError::Propose(ProposeError::Unknown)) => Err(Failed::Unknown),
            Err(ChangeError::Propose(ProposeError::Stopped(_))) => Err(ApiError::Stopped.into()),
            Err(error @ ChangeError::Unfit(_)) => Err(Failed::Refused(Status::internal(error.to_string()))),
        }
    }
}

/// As raft has them: where a member was reached when it was added says its entry, for ever.
fn members(to: &Membership, seen: &Members) -> Members {
    let address = |(id, urls): (&MemberId, &Vec<String>)| {
        (id.0, seen.addresses.get(&id.0).cloned().unwrap_or_else(|| urls.join(",")))
    };
    Members { voters: to.voters.iter().map(|id| id.0).collect(), addresses: to.peer_urls.iter().map(address).collect() }
}

impl Shared {
    fn lags(&self, members: &Members) -> Lags {
        let own = self.identity.member;
        let others = members.addresses.keys().filter(|id| **id != own.0);
        let of = |id: &u64| Some((MemberId(*id), self.group.lag(*id, self.limits.election)?));
        others.filter_map(of).chain([(own, 0)]).collect()
    }

    async fn change_there(&self, leader: u64, change: &Change) -> Result<Changed, Failed> {
        let peer = self.peer(leader).ok_or(Failed::Again)?;
        let mut client = self.links.other(&peer).map_err(|_| Failed::Again)?;
        let call = client.change(self.links.call(leader, wire::Frame::carrying(&written(change))));
        let asked = self.while_leads(leader, call);
        let unknown = |status: Status| {
            tracing::debug!(%status, "a change did not get to the leader, or its answer back");
            Failed::Unknown
        };
        let answer = timeout(self.limits.request, asked).await.map_err(|_| Failed::Unknown)?;
        let answer = answer.map_err(unknown)?;
        self.links.answerer(leader, &answer).map_err(unknown)?;
        let wire::Changed { index, added, code, refused } = answer.into_inner().carried().map_err(unknown)?;
        match code {
            0 => Ok(Changed {
                index: Some(LogIndex(index)).filter(|index| index.0 > 0),
                added: Some(MemberId(added)).filter(|id| id.0 > 0),
            }),
            AGAIN => Err(Failed::Again),
            UNKNOWN => Err(Failed::Unknown),
            code => Err(Failed::Refused(Status::new(Code::from(code), refused))),
        }
    }

    /// Carries out what another member asks for.
    pub(super) async fn change_for(self: &std::sync::Arc<Self>, change: &Change) -> wire::Changed {
        let member = Member { shared: self.clone() };
        match member.change_here(change).await {
            Ok(Changed { index, added }) => wire::Changed {
                index: index.map_or(0, |index| index.0),
                added: added.map_or(0, |id| id.0),
                ..wire::Changed::default()
            },
            Err(Failed::Again) => wire::Changed { code: AGAIN, ..wire::Changed::default() },
            Err(Failed::Unknown) => wire::Changed { code: UNKNOWN, ..wire::Changed::default() },
            Err(Failed::Refused(status)) => wire::Changed {
                code: status.code() as i32,
                refused: status.message().to_owned(),
                ..wire::Changed::default()
            },
        }
    }
}

/// No codes of gRPC's: nothing was proposed, and nobody knows.
const AGAIN: i32 = -1;
const UNKNOWN: i32 = -2;

/// How the leader refuses a change that was made before.
fn made(change: &Change) -> ApiError {
    match change {
        Change::Add { .. } => ApiError::PeerUrlExists,
        Change::Remove(_) => ApiError::MemberNotFound,
        Change::Promote(_) => ApiError::NotALearner,
    }
}

/// Who was added by it.
fn added(cluster: &Cluster, change: &Change) -> Option<MemberId> {
    let Change::Add { peer_urls, .. } = change else { return None };
    cluster.members.iter().find(|(_, member)| member.peer_urls == *peer_urls).map(|(id, _)| *id)
}

fn written(change: &Change) -> wire::Change {
    let what = match change {
        Change::Add { peer_urls, is_learner } => {
            wire::change::What::Add(wire::Added { peer_urls: peer_urls.clone(), is_learner: *is_learner })
        }
        Change::Remove(id) => wire::change::What::Remove(id.0),
        Change::Promote(id) => wire::change::What::Promote(id.0),
    };
    wire::Change { what: Some(what) }
}

/// What another member has asked for.
///
/// # Errors
/// It says nothing.
pub(super) fn read(change: wire::Change) -> Result<Change, Status> {
    match change.what {
        Some(wire::change::What::Add(wire::Added { peer_urls, is_learner })) => {
            Ok(Change::Add { peer_urls, is_learner })
        }
        Some(wire::change::What::Remove(id)) => Ok(Change::Remove(MemberId(id))),
        Some(wire::change::What::Promote(id)) => Ok(Change::Promote(MemberId(id))),
        None => Err(Status::invalid_argument("a change that changes nothing")),
    }
}

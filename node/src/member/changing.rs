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

/// The entry; none where it waits for the member that it adds.
type Made = Option<LogIndex>;

impl Member {
    /// An id that nobody has, for a member that is to be added.
    pub fn new_id(&self) -> MemberId {
        MemberId(RandomState::new().hash_one(self.shared.identity.member).max(1))
    }

    /// Changes who the members are. Returns once this member has applied it.
    ///
    /// # Errors
    /// In etcd's words.
    pub async fn change(&self, change: &Change) -> Result<(), Status> {
        let shared = &self.shared;
        let began = Instant::now();
        let deadline = began + shared.limits.request;
        let mut raft_status = shared.group.raft_status();
        let mut may_be_made = false;
        loop {
            let leader = raft_status.borrow_and_update().leader;
            let outcome = match leader {
                Some(leader) if leader == shared.identity.member.0 => {
                    let made = timeout_at(deadline, self.change_here(change)).await;
                    made.unwrap_or(Err(Failed::Unknown))
                }
                Some(leader) => shared.change_there(leader, change).await,
                None => Err(Failed::Again),
            };
            match outcome {
                // It hears nothing of its own end.
                Ok(_) if *change == Change::Remove(shared.identity.member) => return Ok(()),
                Ok(made) => {
                    let mut applied = shared.machine.applied();
                    let is_applied = applied.wait_for(|applied| made.is_none_or(|index| *applied >= index));
                    let late = |_| ApiError::TimeoutWaitAppliedIndex;
                    let _ = timeout_at(deadline, is_applied).await.map_err(late)?;
                    return Ok(());
                }
                Err(Failed::Refused(status)) if may_be_made && status.message() == made_before(change).to_string() => {
                    self.linearize().await?;
                    return match change {
                        Change::Remove(id) if !self.read(|state| state.cluster.removed.contains(id)) => Err(status),
                        _ => Ok(()),
                    };
                }
                // Somebody was late, or a new leader has not heard everybody yet.
                Err(Failed::Refused(status))
                    if status.message() == ApiError::Unhealthy.to_string()
                        && Instant::now() < began + 2 * shared.limits.election => {}
                Err(Failed::Refused(status)) => return Err(status),
                Err(_) if Instant::now() >= deadline => return Err(shared.late().into()),
                Err(failed) => may_be_made |= matches!(failed, Failed::Unknown),
            }
            let _ = timeout(RETRY_INTERVAL, raft_status.changed()).await;
        }
    }

    /// The same as the leader.
    async fn change_here(&self, change: &Change) -> Result<Made, Failed> {
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
        let lags = shared.group.lags(&seen.members, shared.limits.election).await;
        let lags: Lags = lags.into_iter().map(|(id, lag)| (MemberId(id), lag)).chain([(own, 0)]).collect();
        // Who leads no more hears nobody, and what is there by now is another one's to judge.
        let is_as_it_was = || *shared.group.raft_status().borrow() == now && shared.group.members_at() == seen;
        if !is_as_it_was() || shared.machine.read(|state| state.cluster.members.is_empty()) {
            return Err(Failed::Again);
        }
        let (to, is_one) = shared.machine.read(|state| {
            let to = state.cluster.changed(change, shared.rules, &lags)?;
            Ok::<_, ApiError>((to, is_one_list(&state.cluster, &seen.members)))
        })?;
        if !is_one && !is_as_it_was() {
            return Err(Failed::Again);
        }
        if !is_one {
            let text = "the state was made by a release that knows no members that come and go: restore the cluster from a snapshot";
            return Err(Failed::Refused(Status::failed_precondition(text)));
        }
        if *change == Change::Remove(own) {
            // It goes without a gap: who takes over carries it out.
            self.step_down().await.map_err(Status::from).map_err(Failed::Refused)?;
            return Err(Failed::Again);
        }
        tracing::info!(?change, "changes the members");
        match shared.group.change_members(now.term, &seen, &members(&to, &seen.members)).await {
            Ok(index) => Ok(index.map(LogIndex)),
            Err(ChangeError::Overtaken | ChangeError::Propose(ProposeError::NotLeader)) => Err(Failed::Again),
            Err(ChangeError::Propose(ProposeError::Unknown)) => Err(Failed::Unknown),
            Err(ChangeError::Propose(ProposeError::Stopped(_))) => Err(ApiError::Stopped.into()),
            Err(error @ ChangeError::Unfit(_)) => Err(Failed::Refused(Status::internal(error.to_string()))),
        }
    }

    /// The voter that this member has added while it was alone, and that the state gets once it is there (N-9).
    pub fn awaited_voter(&self) -> Option<(MemberId, Vec<String>)> {
        let is_alone = self.read(|state| state.cluster.voters().map(|(id, _)| id).eq([self.identity().member]));
        self.appended_voter().filter(|_| is_alone)
    }

    /// The voter that the log adds and the state does not have yet. It counts from there on (raft dissertation, section 4.1): where
    /// another one is lost meanwhile, nothing is decided before it is there.
    pub fn appended_voter(&self) -> Option<(MemberId, Vec<String>)> {
        let Members { voters, addresses } = self.shared.group.members_at().members;
        let is_new = |id: &&u64| {
            self.read(|state| !state.cluster.members.is_empty() && !state.cluster.members.contains_key(&MemberId(**id)))
        };
        let new = voters.iter().find(is_new)?;
        Some((MemberId(*new), addresses.get(new)?.split(',').map(str::to_owned).collect()))
    }
}

/// Whether the state has the members that raft has.
fn is_one_list(cluster: &Cluster, seen: &Members) -> bool {
    cluster.members.keys().map(|id| &id.0).eq(seen.addresses.keys())
        && cluster.voters().map(|(id, _)| id.0).eq(seen.voters.iter().copied())
}

/// As raft has them: where a member was reached when it was added says its entry, for ever.
fn members(to: &Membership, seen: &Members) -> Members {
    let address = |(id, urls): (&MemberId, &Vec<String>)| {
        (id.0, seen.addresses.get(&id.0).cloned().unwrap_or_else(|| urls.join(",")))
    };
    Members { voters: to.voters.iter().map(|id| id.0).collect(), addresses: to.peer_urls.iter().map(address).collect() }
}

impl Shared {
    async fn change_there(&self, leader: u64, change: &Change) -> Result<Made, Failed> {
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
        let wire::Changed { index, code, refused } = answer.into_inner().carried().map_err(unknown)?;
        match code {
            0 => Ok(Some(LogIndex(index)).filter(|index| index.0 > 0)),
            AGAIN => Err(Failed::Again),
            UNKNOWN => Err(Failed::Unknown),
            code => Err(Failed::Refused(Status::new(Code::from(code), refused))),
        }
    }

    /// Carries out what another member asks for.
    pub(super) async fn change_for(self: &std::sync::Arc<Self>, change: &Change) -> wire::Changed {
        let member = Member { shared: self.clone() };
        let made = timeout(self.limits.request, member.change_here(change)).await;
        match made.unwrap_or(Err(Failed::Unknown)) {
            Ok(made) => wire::Changed { index: made.map_or(0, |index| index.0), ..wire::Changed::default() },
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
fn made_before(change: &Change) -> ApiError {
    match change {
        Change::Add { .. } => ApiError::MemberExists,
        Change::Remove(_) => ApiError::MemberNotFound,
        Change::Promote(_) => ApiError::NotALearner,
    }
}

fn written(change: &Change) -> wire::Change {
    let what = match change {
        Change::Add { id, peer_urls, is_learner } => {
            wire::change::What::Add(wire::Added { id: id.0, peer_urls: peer_urls.clone(), is_learner: *is_learner })
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
        Some(wire::change::What::Add(wire::Added { id, peer_urls, is_learner })) if id > 0 => {
            Ok(Change::Add { id: MemberId(id), peer_urls, is_learner })
        }
        Some(wire::change::What::Remove(id)) => Ok(Change::Remove(MemberId(id))),
        Some(wire::change::What::Promote(id)) => Ok(Change::Promote(MemberId(id))),
        _ => Err(Status::invalid_argument("a change that changes nothing")),
    }
}

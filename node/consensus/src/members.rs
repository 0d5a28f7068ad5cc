//! Who is in the group, and how that changes: one voter at a time, in one entry (raft dissertation, section 4.1).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use openraft::{
    BasicNode,
    async_runtime::watch::WatchReceiver as _,
    errors::{ClientWriteError, RaftError},
    raft::Precondition,
};
use tokio::time::{Instant, sleep};

use crate::{
    group::{Group, ProposeError, reason},
    types::{Committed, LogId, Membership, Payload},
};

/// Between two looks at who has answered.
const LOOK: Duration = Duration::from_millis(5);

/// Everybody in the group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Those who vote: of either half, while a group goes from one set of voters to another.
    pub voters: BTreeSet<u64>,
    /// Where each is reached, the learners too: its peer URLs, with commas between.
    pub addresses: BTreeMap<u64, String>,
}

/// The members, and the entry that made them so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersAt {
    /// Who they are.
    pub members: Members,
    id: Option<LogId>,
}

impl MembersAt {
    /// The entry; 0 where there is none yet.
    pub fn index(&self) -> u64 {
        self.id.map_or(0, |id| id.index)
    }
}

/// Why the members stay who they are, as far as this member knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// They are others by now, or one change more is under way: it may be tried again.
    #[error("another change of the members is under way")]
    Overtaken,
    /// Not in the log, or nobody knows.
    #[error(transparent)]
    Propose(#[from] ProposeError),
    /// More than one voter would change at once.
    #[error("{0}")]
    Unfit(String),
}

impl Members {
    pub(crate) fn of(membership: &Membership) -> Self {
        Self {
            voters: membership.voter_ids().collect(),
            addresses: membership.nodes().map(|(id, node)| (*id, node.addr.clone())).collect(),
        }
    }

    fn membership(&self) -> Result<Membership, ChangeError> {
        let nodes: BTreeMap<_, _> = self.addresses.iter().map(|(id, address)| (*id, BasicNode::new(address))).collect();
        Membership::new(vec![self.voters.clone()], nodes).map_err(|error| ChangeError::Unfit(error.to_string()))
    }
}

impl Group {
    /// The members by this member's log: the last entry that names them counts, committed or not.
    pub fn members_at(&self) -> MembersAt {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let stored = &metrics.membership_config;
        MembersAt { members: Members::of(stored.membership()), id: *stored.log_id() }
    }

    /// Proposes, as the leader of this term, that the members be these from now on, where they are still as they were `seen`. The
    /// index of the entry, once it is applied here; none where a member that is alone gets a second voter, and waits for that.
    ///
    /// # Errors
    /// [`ChangeError`]
    pub async fn change_members(&self, term: u64, seen: &MembersAt, to: &Members) -> Result<Option<u64>, ChangeError> {
        let group = self.clone();
        let (seen_then, to_then) = (seen.clone(), to.clone());
        // Whoever asked may be gone: it goes on all the same.
        let mut written = tokio::spawn(async move { group.append_members(term, &seen_then, &to_then).await });
        let unknown = |_| ProposeError::Unknown;
        let is_new = |id: &u64| !seen.members.addresses.contains_key(id);
        let is_alone = seen.members.voters.len() == 1 && to.voters.iter().any(is_new);
        if !is_alone {
            return Ok(Some(written.await.map_err(unknown)??));
        }
        // It needs the second one's word from here on. But nobody else has a log: what is durable here is decided.
        tokio::select! {
            biased;
            index = &mut written => Ok(Some(index.map_err(unknown)??)),
            () = self.has_stored(seen, to) => Ok(None),
        }
    }

    async fn has_stored(&self, seen: &MembersAt, to: &Members) {
        let mut metrics = self.raft.metrics();
        loop {
            let is_stored = {
                let now = metrics.borrow_watched();
                let (at, own) = (*now.membership_config.log_id(), now.id);
                let durable = now.replication.as_ref().and_then(|of| *of.get(&own)?);
                at != seen.id && durable >= at && Members::of(now.membership_config.membership()) == *to
            };
            if is_stored {
                return;
            }
            if metrics.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    async fn append_members(&self, term: u64, seen: &MembersAt, to: &Members) -> Result<u64, ChangeError> {
        let preconditions = [
            Precondition::CommittedLeaderId { committed_leader_id: Committed { term } },
            Precondition::LastMembershipLogId { last_membership_log_id: seen.id },
        ];
        match self.raft.append_membership(to.membership()?, Payload::Blank, preconditions).await {
            Ok(written) => Ok(written.log_id.index),
            Err(RaftError::Fatal(fatal)) => Err(ProposeError::Stopped(reason(&fatal)).into()),
            Err(RaftError::APIError(error)) => Err(match error {
                ClientWriteError::ForwardToLeader(_) => ProposeError::NotLeader.into(),
                ClientWriteError::PreconditionFailed(_) => ChangeError::Overtaken,
                ClientWriteError::ChangeMembershipError(error) => refused(&error),
                _ => ProposeError::Unknown.into(),
            }),
        }
    }

    /// At the leader: how far behind its log each member is, in entries, that answers what is sent from now on, within this limit.
    /// What somebody said a moment ago does not count: it may be gone since.
    pub async fn lags(&self, members: &Members, limit: Duration) -> BTreeMap<u64, u64> {
        let (began, deadline) = (self.answered.now(), Instant::now() + limit);
        let others = || members.addresses.keys().copied().filter(|id| *id != self.own());
        let mut answering: BTreeSet<_> = BTreeSet::new();
        loop {
            answering.extend(others().filter(|id| self.answered.has_answered_since(*id, began)));
            if answering.len() == others().count() || Instant::now() >= deadline {
                break;
            }
            sleep(LOOK).await;
        }
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let last = metrics.last_log_index.unwrap_or_default();
        let matched = |id: &u64| Some(metrics.replication.as_ref()?.get(id)?.as_ref()?.index);
        // One that has answered, and not yet said what it has, has nothing.
        answering.into_iter().map(|id| (id, last.saturating_sub(matched(&id).unwrap_or_default()))).collect()
    }

    fn own(&self) -> u64 {
        self.raft.metrics().borrow_watched().id
    }
}

fn refused(error: &openraft::errors::ChangeMembershipError<Committed, u64>) -> ChangeError {
    use openraft::errors::ChangeMembershipError as E;
    match error {
        E::InProgress(_) | E::UncommittedLeaderLog(_) => ChangeError::Overtaken,
        other => ChangeError::Unfit(other.to_string()),
    }
}

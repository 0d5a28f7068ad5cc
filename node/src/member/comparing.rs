//! Compares what the members hold, as the leader: now and then, and with a member that has started. One that holds something
//! else gets the alarm CORRUPT, and from then on nobody writes (etcd, `PeriodicCheck` in server/etcdserver/corrupt.go).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use consensus::aside;
use futures_util::future::join_all;
use proto::{
    MemberId, Revision,
    etcdserverpb::{AlarmRequest, AlarmType, alarm_request::AlarmAction},
};
use tokio::time::{Instant, sleep, timeout};
use tonic::Status;

use super::{Member, Shared, leading::AllHeard, wire};
use crate::{
    api_error::ApiError,
    cluster::{leader_proposals::Heard, member::Starts},
    entry::EntryKind,
};

/// How long a member has until it is compared, once it has started: it may have much to catch up with.
const SETTLING_TIME: Duration = Duration::from_secs(10);

/// What a member's keys come to at a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hashed {
    pub(super) hash: u32,
    /// The last compaction there: what it leaves is part of what is hashed.
    pub(super) compacted: Revision,
}

/// Why a member does not serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this member holds other keys at revision {at} than {} and may not serve (--feature-gates=InitialCorruptCheck=true); find out who \
     is right. If they are: remove this member, empty its data directory, and add it anew (etcdctl member remove, member add)",
    names(others)
)]
pub struct Differs {
    at: Revision,
    others: Vec<MemberId>,
}

fn names(members: &[MemberId]) -> String {
    members.iter().map(MemberId::to_string).collect::<Vec<_>>().join(" and ")
}

/// The members that this one differs from, where those who agree with it are not most of them.
fn contradicting(own: MemberId, hashed: &BTreeMap<MemberId, Hashed>) -> Vec<MemberId> {
    let Some(here) = hashed.get(&own) else { return Vec::new() };
    let compared = hashed.iter().filter(|(_, other)| other.compacted == here.compacted);
    let (same, others): (Vec<_>, Vec<_>) = compared.partition(|(_, other)| other.hash == here.hash);
    if same.len() > others.len() { Vec::new() } else { others.into_iter().map(|(id, _)| *id).collect() }
}

/// The members that hold something else than most of those that can be compared with the leader; where there is no such most,
/// than the leader.
fn odd_ones(leader: MemberId, hashed: &BTreeMap<MemberId, Hashed>) -> Vec<MemberId> {
    let Some(own) = hashed.get(&leader) else { return Vec::new() };
    let compared = || hashed.iter().filter(|(_, other)| other.compacted == own.compacted);
    let count = |hash: u32| compared().filter(|(_, other)| other.hash == hash).count();
    let most = compared().map(|(_, other)| other.hash).find(|hash| 2 * count(*hash) > compared().count());
    let right = most.unwrap_or(own.hash);
    compared().filter(|(_, other)| other.hash != right).map(|(id, _)| *id).collect()
}

impl Shared {
    /// What this member's keys come to, once it has applied so much.
    pub(super) async fn hash_here(&self, at: Revision) -> Result<Hashed, Status> {
        let mut applied = self.machine.applied();
        let is_there = applied.wait_for(|_| self.machine.read(|state| state.keys.revision() >= at));
        let late = |_| Status::unavailable("this member is not so far yet");
        timeout(self.limits.request, is_there).await.map_err(late)?.map_err(|_| ApiError::Stopped)?;
        let (state, began) = (self.machine.frozen(), Instant::now());
        let hashed = aside(move || state.keys.hash_kv(at.0)).await;
        self.counts.hashes.at_revision.observe(began.elapsed());
        let found = hashed.map_err(|error| Status::internal(error.to_string()))??;
        Ok(Hashed { hash: found.hash, compacted: Revision(found.compact_revision) })
    }

    async fn hash_of(&self, member: MemberId, at: Revision) -> Result<Hashed, Status> {
        if member == self.identity.member {
            return self.hash_here(at).await;
        }
        let peer = self.peer(member.0).ok_or_else(|| Status::not_found("no member any more"))?;
        let mut client = self.links.other(&peer)?;
        let call = client.hash(self.links.call(member.0, wire::Frame::carrying(&wire::HashAt { revision: at.0 })));
        let answer = timeout(2 * self.limits.request, call).await.map_err(|_| ApiError::Timeout)??;
        self.links.answerer(member.0, &answer)?;
        let wire::HashOf { hash, compacted, revision } = answer.into_inner().carried()?;
        if revision != at.0 {
            return Err(Status::unavailable(format!("it was asked at revision {at}, and answered for {revision}")));
        }
        Ok(Hashed { hash, compacted: Revision(compacted) })
    }

    /// What those come to who answer.
    async fn hashes(&self, at: Revision) -> BTreeMap<MemberId, Hashed> {
        let members: Vec<_> = self.group.members().into_keys().map(MemberId).collect();
        let hashes = join_all(members.iter().map(|member| self.hash_of(*member, at))).await;
        let mut hashed = BTreeMap::new();
        for (member, hash) in members.into_iter().zip(hashes) {
            match hash {
                Ok(hash) => drop(hashed.insert(member, hash)),
                Err(status) => tracing::debug!(%member, %status, "a member is not compared this time"),
            }
        }
        hashed
    }

    async fn compare(&self, term: u64) {
        let at = self.machine.read(|state| state.keys.revision());
        let hashed = self.hashes(at).await;
        for member in odd_ones(self.identity.member, &hashed) {
            let kind = AlarmType::Corrupt as i32;
            if self.machine.read(|state| state.alarms.contains(&(member, kind))) {
                continue;
            }
            tracing::error!(
                %member, revision = at.0, ?hashed,
                "a member holds something else than the others: the alarm CORRUPT is raised, and nobody writes until it is \
                 disarmed. Find out which data is right before any member's is emptied"
            );
            let (action, alarm) = (AlarmAction::Activate.into(), AlarmType::Corrupt.into());
            let alarm = AlarmRequest { action, member_id: member.0, alarm };
            if let Err(error) = self.propose_as_leader(term, EntryKind::Alarm(alarm)).await {
                tracing::warn!(%error, %member, "the alarm CORRUPT was not raised");
            }
        }
    }
}

impl Member {
    /// Compares what this member holds with what those hold who answer, before it serves (etcd, `InitialCheck` in
    /// server/etcdserver/corrupt.go).
    ///
    /// # Errors
    /// [`Differs`]: it must not serve.
    pub async fn agrees(&self) -> Result<(), Differs> {
        let at = self.shared.machine.read(|state| state.keys.revision());
        let others = contradicting(self.shared.identity.member, &self.shared.hashes(at).await);
        if others.is_empty() { Ok(()) } else { Err(Differs { at, others }) }
    }
}

/// Compares for as long as this member leads in this term; never where there is no interval.
pub(super) async fn run(shared: &Arc<Shared>, term: u64, interval: Option<Duration>, heard: &AllHeard) {
    let Some(interval) = interval else { return };
    let mut heard = heard.subscribe();
    let mut compared = BTreeMap::<MemberId, Starts>::new();
    loop {
        let is_new = |(member, now): (&MemberId, &Heard)| compared.get(member) != Some(&now.starts);
        let started = async { heard.wait_for(|now| now.iter().any(is_new)).await.is_ok() };
        tokio::select! {
            started = started => match started {
                true => sleep(SETTLING_TIME).await,
                false => return,
            },
            () = sleep(interval) => {}
        }
        compared.extend(heard.borrow_and_update().iter().map(|(member, now)| (*member, now.starts)));
        shared.compare(term).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each member's hash, and its last compaction.
    fn hashed(members: &[(u32, i64)]) -> BTreeMap<MemberId, Hashed> {
        let of = |(hash, compacted): &(u32, i64)| Hashed { hash: *hash, compacted: Revision(*compacted) };
        (1..).map(MemberId).zip(members.iter().map(of)).collect()
    }

    #[test]
    fn who_is_not_with_most_of_those_who_answer_may_not_serve() {
        // Member 1 starts.
        for (members, others, why) in [
            (&[(7, 0), (7, 0), (7, 0)][..], &[][..], "all agree"),
            (&[(7, 0), (8, 0), (8, 0)], &[2, 3], "all others differ"),
            (&[(7, 0), (7, 0), (8, 0)], &[], "it is with most"),
            (&[(7, 0), (8, 0)], &[2], "one against one: who is right is not known"),
            (&[(7, 0), (8, 5)], &[], "another compaction cannot be compared"),
            (&[(7, 0)], &[], "nobody else answers"),
        ] {
            let others: Vec<_> = others.iter().copied().map(MemberId).collect();
            assert_eq!(contradicting(MemberId(1), &hashed(members)), others, "{why}");
        }
    }

    #[test]
    fn who_differs_from_most_is_odd_and_without_most_who_differs_from_the_leader() {
        // Member 1 leads.
        for (members, odd, why) in [
            (&[(7, 0), (7, 0), (7, 0)][..], &[][..], "all agree"),
            (&[(7, 0), (7, 0), (8, 0)], &[3], "one differs"),
            (&[(8, 0), (7, 0), (7, 0)], &[1], "the leader differs"),
            (&[(7, 0), (8, 0)], &[2], "two of two"),
            (&[(7, 0), (8, 0), (9, 0)], &[2, 3], "each differs"),
            (&[(7, 0), (7, 0), (8, 5)], &[], "another compaction cannot be compared"),
            (&[(7, 5), (8, 0), (8, 0)], &[], "nor can the leader's"),
            (&[(7, 0)], &[], "alone"),
        ] {
            let odd: Vec<_> = odd.iter().copied().map(MemberId).collect();
            assert_eq!(odd_ones(MemberId(1), &hashed(members)), odd, "{why}");
        }
        assert_eq!(odd_ones(MemberId(1), &BTreeMap::new()), [], "the leader's is not known");
    }
}

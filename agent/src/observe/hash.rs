//! Whether all members hold the same data: a hash of all keys at one revision, member by member.
//!
//! A hash stalls the member for the whole scan: one at a time, followers first, and none of a large database. Hashes are
//! comparable at one revision and over the same history only, so where a compaction came in between it is done again.
//! Source: etcd documentation, `HashKV`.

use proto::{
    MemberId, Revision,
    etcdserverpb::{HashKvRequest, maintenance_client::MaintenanceClient},
};
use tonic::Code;

use super::{
    cluster::{Connections, Observer},
    error::CallError,
    member::{another, whose},
    view::{ClusterView, Member, Role},
};

/// How often it is tried before it is given up with a warning.
const TRIES: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hashes {
    /// Every member that was asked has the same.
    Equal {
        revision: Revision,
        /// How many were asked; a learner may refuse, and is left out.
        members: usize,
    },
    /// They differ: data is damaged.
    Different { revision: Revision, hashes: Vec<(MemberId, u32)> },
    /// A member answers a linearizable read at a lower revision than another one had answered at before it was asked: it has applied all
    /// that was committed by then, and an entry of it otherwise.
    Behind { before: (MemberId, Revision), after: (MemberId, Revision) },
    /// They could not be compared, and why.
    NotCompared(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashAnswer {
    pub member: MemberId,
    pub hash: u32,
    /// Below which it has no history.
    pub compacted: Revision,
}

/// Why one try came to nothing.
enum Setback {
    /// History moved under it: another revision may do.
    Again(String),
    /// Nothing to be gained by another try.
    GiveUp(String),
}

impl Observer {
    /// Compares the members of a view, unless a database is larger than `max_db_bytes`.
    pub async fn hashes(&self, view: &ClusterView, max_db_bytes: u64) -> Hashes {
        if let Some((member, bytes)) = largest(view).filter(|(_, bytes)| *bytes > max_db_bytes) {
            return Hashes::NotCompared(format!(
                "the database of {} has {bytes} bytes, more than {max_db_bytes}",
                called(member)
            ));
        }
        let mut reason = String::new();
        for _ in 0..TRIES {
            match self.connections.hash_once(view).await {
                Ok(hashes) => return hashes,
                Err(Setback::GiveUp(reason)) => return Hashes::NotCompared(reason),
                Err(Setback::Again(why)) => reason = why,
            }
        }
        Hashes::NotCompared(format!("{reason}, {TRIES} times"))
    }
}

impl Connections {
    async fn hash_once(&self, view: &ClusterView) -> Result<Hashes, Setback> {
        let mut first: Option<(MemberId, Revision)> = None;
        let mut answers = Vec::new();
        for member in in_order(view) {
            let address = self
                .address_of(member.id)
                .filter(|_| member.report().is_some())
                .ok_or_else(|| Setback::GiveUp(format!("{} does not answer", called(member))))?;
            if member.role == Role::Voter {
                // Also makes the member apply what the revision stands for.
                let seen = self.linearizable_revision(member, &address).await?;
                let before = *first.get_or_insert((member.id, seen));
                if seen < before.1 {
                    return Ok(Hashes::Behind { before, after: (member.id, seen) });
                }
            }
            let (_, at) = first.ok_or_else(|| Setback::GiveUp("the cluster has no voter".to_owned()))?;
            answers.extend(self.hash_of(member, &address, at).await?);
        }
        compare(first.map_or(Revision::default(), |(_, at)| at), &answers)
            .ok_or_else(|| Setback::Again("history was compacted".into()))
    }

    async fn linearizable_revision(&self, member: &Member, address: &str) -> Result<Revision, Setback> {
        let header = self.access.linearizable(address, &self.key).await;
        let header = header.map_err(|error| Setback::GiveUp(format!("{}: {error}", called(member))))?;
        match header {
            Some(header) if header.member_id == member.id.0 => Ok(Revision(header.revision)),
            _ => Err(Setback::GiveUp(format!("{address} is not answered by {}", called(member)))),
        }
    }

    /// `None` where a learner does not serve it.
    async fn hash_of(&self, member: &Member, address: &str, at: Revision) -> Result<Option<HashAnswer>, Setback> {
        let request = HashKvRequest { revision: at.0 };
        let answer =
            self.access
                .ask(address, request, |channel, request| async move {
                    MaintenanceClient::new(channel).hash_kv(request).await
                })
                .await;
        let in_words = |error: &CallError| format!("{}: {error}", called(member));
        match answer {
            Ok(answer) => match whose(answer.header.as_ref()) {
                Some((id, _)) if id == member.id => {
                    Ok(Some(HashAnswer { member: id, hash: answer.hash, compacted: Revision(answer.compact_revision) }))
                }
                Some((id, _)) => Err(Setback::GiveUp(another(address, id).to_string())),
                None => Err(Setback::GiveUp(format!("{address} answers without a member id"))),
            },
            Err(error) if error.code() == Some(Code::OutOfRange) => Err(Setback::Again(in_words(&error))),
            Err(error) if member.role == Role::Learner && error.code().is_some() => Ok(None),
            Err(error) => Err(Setback::GiveUp(in_words(&error))),
        }
    }
}

/// Its name; its id where it has none.
fn called(member: &Member) -> String {
    match member.name.is_empty() {
        true => format!("member {}", member.id),
        false => member.name.to_string(),
    }
}

/// What the answers come to; `None` where they are of different histories.
pub fn compare(revision: Revision, answers: &[HashAnswer]) -> Option<Hashes> {
    let first = answers.first()?;
    if answers.iter().any(|answer| answer.compacted != first.compacted) {
        return None;
    }
    Some(if answers.iter().all(|answer| answer.hash == first.hash) {
        Hashes::Equal { revision, members: answers.len() }
    } else {
        Hashes::Different { revision, hashes: answers.iter().map(|answer| (answer.member, answer.hash)).collect() }
    })
}

/// Followers first, then learners, the leader last: whom a stall hurts least comes first, and the revision is a voter's.
fn in_order(view: &ClusterView) -> Vec<&Member> {
    let mut members: Vec<_> = view.started().collect();
    members.sort_by_key(|member| (view.is_leader(member.id), member.role == Role::Learner, member.id));
    members
}

fn largest(view: &ClusterView) -> Option<(&Member, u64)> {
    let sizes = view.members.iter().filter_map(|member| {
        let bytes = u64::try_from(member.report()?.db_bytes).ok()?;
        Some((member, bytes))
    });
    sizes.max_by_key(|(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_compared_over_one_history() {
        for (answers, expected) in [
            (vec![(1, 7, 3), (2, 7, 3), (3, 7, 3)], Some(true)),
            (vec![(1, 7, 3), (2, 8, 3), (3, 7, 3)], Some(false)),
            (vec![(1, 7, 3), (2, 8, 4), (3, 7, 3)], None), // compacted in between: no verdict
            (vec![(1, 7, 3), (2, 7, 4)], None),
            (vec![(1, 7, -1)], Some(true)),
            (vec![], None),
        ] {
            let answers: Vec<_> = answers
                .into_iter()
                .map(|(id, hash, at)| HashAnswer { member: MemberId(id), hash, compacted: Revision(at) })
                .collect();
            let equal = compare(Revision(9), &answers).map(|hashes| matches!(hashes, Hashes::Equal { .. }));
            assert_eq!(equal, expected, "{answers:?}");
        }
    }
}

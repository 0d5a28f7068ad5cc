//! Whether members hold different things though they have applied the same log: what a new release takes over then is somebody's
//! alone (etcd's documentation, "Data corruption").
//!
//! Revisions are cheap, and show what lies beyond a hash: at one applied index each voter must have the same one. A member may only be
//! slow, so a difference counts if it stands after a linearizable read through each of them: by then all have applied what the first look
//! saw of any (raft paper, section 8). Learners answer no such read. Hashes are asked for as at the end of a run.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use proto::{LogIndex, MemberId, Revision};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::{
    Hashes, Observer,
    cluster::{Connections, side_by_side},
    health::Read,
    view::{ClusterView, Member},
};

/// How long lies between two looks.
const APART: Duration = Duration::from_millis(300);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// Their revisions, where the same entry was applied last.
    Revisions { applied: LogIndex, of: Vec<(MemberId, Revision)> },
    /// The revisions of users and roles, which no hash covers.
    Users { of: Vec<(MemberId, u64)> },
    /// A linearizable read through the second member, made after one through the first, was answered at a lower revision.
    Behind { before: (MemberId, Revision), after: (MemberId, Revision) },
    /// The hashes of all keys at one revision.
    Hashes { revision: Revision, of: Vec<(MemberId, u32)> },
}

impl Difference {
    /// What a comparison of hashes came to, where it came to one.
    pub fn of(hashes: Hashes) -> Option<Self> {
        match hashes {
            Hashes::Different { revision, hashes: of } => Some(Self::Hashes { revision, of }),
            Hashes::Behind { before, after } => Some(Self::Behind { before, after }),
            Hashes::Equal { .. } | Hashes::NotCompared(_) => None,
        }
    }

    /// Those that were compared.
    pub fn members(&self) -> Vec<MemberId> {
        match self {
            Self::Revisions { of, .. } => of.iter().map(|(member, _)| *member).collect(),
            Self::Behind { before, after } => vec![before.0, after.0],
            Self::Users { of } => of.iter().map(|(member, _)| *member).collect(),
            Self::Hashes { of, .. } => of.iter().map(|(member, _)| *member).collect(),
        }
    }
}

/// What a member had at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    applied: LogIndex,
    revision: Revision,
    /// The revision of its users and roles; `None` where it does not say.
    users: Option<u64>,
}

type Looked = BTreeMap<MemberId, Held>;

impl Observer {
    /// What differs between the members of a view, as far as that is to be had. A database of more than `max_db_bytes` is not hashed,
    /// and nobody's is while members run several releases, whose hashes may differ by what they count (etcd v3.5.16,
    /// `server/storage/mvcc/hash.go`).
    pub async fn differences(&self, view: &ClusterView, max_db_bytes: u64) -> Vec<Difference> {
        let first = self.held(view, false).await;
        let mut found = standing(&first, &first);
        if !found.is_empty() {
            sleep(APART).await;
            found = standing(&first, &self.held(view, true).await);
        }
        let mut releases = view.started().map(Member::release);
        let one = releases.next().flatten();
        let is_one_release = one.is_some() && releases.all(|release| release == one);
        if is_one_release {
            found.extend(Difference::of(self.hashes(view, max_db_bytes).await));
        }
        found
    }

    /// Of each voter that is ready; `reads`: once it has answered a linearizable read.
    async fn held(&self, view: &ClusterView, reads: bool) -> Looked {
        let asked = view.voters().filter(|voter| voter.is_ready()).filter_map(|member| {
            let (id, name, address) = (member.id, member.name.clone(), member.reached.clone()?);
            let connections = Arc::clone(&self.connections);
            Some(async move { Some((id, connections.held_by((id, &name), &address, reads).await?)) })
        });
        side_by_side(asked).await.into_iter().flatten().collect()
    }
}

impl Connections {
    async fn held_by(&self, (member, name): (MemberId, &str), address: &str, reads: bool) -> Option<Held> {
        if reads && self.access.read_through(member, address, &self.key).await != Read::Answered {
            return None;
        }
        let users = self.http.users_revision(name, address, member).await;
        let seen = self.access.status_of(member, address).await.ok()?;
        Some(Held { applied: seen.applied(), revision: seen.revision(), users })
    }
}

/// What is different in the first look, and is the same in the other one.
fn standing(first: &Looked, later: &Looked) -> Vec<Difference> {
    let stayed = |member: &MemberId, of: fn(&Held) -> (LogIndex, Revision, Option<u64>)| {
        later.get(member).map(of) == first.get(member).map(of)
    };
    let users: Vec<_> = first
        .iter()
        .filter(|(member, _)| stayed(member, |held| (LogIndex(0), Revision(0), held.users)))
        .filter_map(|(member, held)| Some((*member, held.users?)))
        .collect();
    let mut by_index: BTreeMap<LogIndex, Vec<(MemberId, Revision)>> = BTreeMap::new();
    first
        .iter()
        .filter(|(member, _)| stayed(member, |held| (held.applied, held.revision, None)))
        .for_each(|(member, held)| by_index.entry(held.applied).or_default().push((*member, held.revision)));
    let revisions = by_index.into_iter().filter(|(_, of)| differ(of));
    let users = Some(users).filter(|of| differ(of)).map(|of| Difference::Users { of });
    revisions.map(|(applied, of)| Difference::Revisions { applied, of }).chain(users).collect()
}

fn differ<T: PartialEq>(of: &[(MemberId, T)]) -> bool {
    of.windows(2).any(|pair| pair[0].1 != pair[1].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `9:5/2` is a member that has applied entry 9, and has revision 5 and users of revision 2; `-` says nothing.
    fn look(text: &str) -> Looked {
        let held = |word: &str| {
            let (applied, rest) = word.split_once(':')?;
            let (revision, users) = rest.split_once('/')?;
            let (applied, revision) = (LogIndex(applied.parse().unwrap()), Revision(revision.parse().unwrap()));
            Some(Held { applied, revision, users: users.parse().ok() })
        };
        let members = (1..).map(MemberId).zip(text.split_whitespace());
        members.filter_map(|(member, word)| Some((member, held(word)?))).collect()
    }

    #[test]
    fn what_differs_at_one_index_and_stays_so_is_found() {
        let revisions = |applied, of: &[(u64, i64)]| {
            let of = of.iter().map(|(member, revision)| (MemberId(*member), Revision(*revision))).collect();
            Difference::Revisions { applied: LogIndex(applied), of }
        };
        let users = |of: &[(u64, u64)]| Difference::Users {
            of: of.iter().map(|(member, users)| (MemberId(*member), *users)).collect(),
        };
        for (looks, expected) in [
            (vec!["9:5/1 9:5/1 9:5/1"; 2], vec![]),
            (vec!["9:5/1 8:4/1 9:5/1"; 2], vec![]),
            (vec!["9:5/1 9:4/1 9:5/1"; 2], vec![revisions(9, &[(1, 5), (2, 4), (3, 5)])]),
            (vec!["9:5/1 9:4/1 8:4/1"; 2], vec![revisions(9, &[(1, 5), (2, 4)])]),
            (vec!["9:5/1 9:4/1 9:5/1", "9:5/1 9:5/1 9:5/1"], vec![]), // it was being applied
            (vec!["9:5/1 9:4/1 9:5/1", "10:6/1 10:5/1 10:6/1"], vec![]), // what was asked may be of two moments
            (vec!["9:5/1 9:4/1 -", "9:5/1 - -"], vec![]),
            (vec!["9:5/1 9:5/2 9:5/1"; 2], vec![users(&[(1, 1), (2, 2), (3, 1)])]),
            (vec!["9:5/1 9:5/2 9:5/1", "19:5/1 17:5/2 18:5/1"], vec![users(&[(1, 1), (2, 2), (3, 1)])]), // the log may go on
            (vec!["9:5/1 9:5/2 9:5/1", "9:5/2 9:5/2 9:5/2"], vec![]),
            (vec!["9:5/? 9:5/2 9:5/?"; 2], vec![]),
            (vec![""; 2], vec![]),
        ] {
            let [first, later] = [0, 1].map(|at| look(looks[at]));
            assert_eq!(standing(&first, &later), expected, "{looks:?}");
        }
    }
}

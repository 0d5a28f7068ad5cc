//! Seats: the places that a cluster has for members. A member may leave its seat to another; the seat stays.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use proto::MemberId;
use serde::{Deserialize, Serialize};

use super::host_id::HostId;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// The node's name in the playbook, which is its member's name too.
    pub name: Arc<str>,
    /// Where it is, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// Who has it now; nobody before it was added, or after it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<MemberId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seats(pub Vec<Seat>);

/// Cheap, for searches over millions of states.
impl Hash for Seat {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.member.hash(state);
    }
}

impl Seats {
    /// A host's nodes, each with the member it is.
    pub fn on(host: HostId, nodes: impl IntoIterator<Item = (Arc<str>, MemberId)>) -> Self {
        let seat = |(name, member)| Seat { name, host: Some(host), member: Some(member) };
        Self(nodes.into_iter().map(seat).collect())
    }

    /// Whether one of them is this member's.
    pub fn has(&self, member: MemberId) -> bool {
        self.members().any(|one| one == member)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn members(&self) -> impl Iterator<Item = MemberId> + Clone {
        self.0.iter().filter_map(|seat| seat.member)
    }
}

//! What is known of a host that carries members: which, whether it is to go, and what keeps it.
//!
//! One key a host. A mark, a hold and a member are one value, so whoever changes one of them compares the others: nothing is lifted
//! beside a mark that came meanwhile. Source: agent/HOSTS.md.

use std::sync::Arc;

use proto::MemberId;
use serde::{Deserialize, Serialize};

use crate::unknown::Unknown;

/// The owner of the holds that agents put and lift themselves.
pub const OWNER: &str = "baton";
/// The name of their hold.
pub const QUORUM: &str = "quorum";

/// Written by `adopt`, `drain`, `hold`, and by the runs that change members; each compares its last write.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostRecord {
    /// The host's name, by which people call it.
    pub host_name: Arc<str>,
    pub phase: Phase,
    /// The members that it carries, in order of id; a newcomer from just before it votes.
    #[serde(default)]
    pub members: Vec<MemberId>,
    /// Their names, for people; kept when they are gone, by which one who asks again still finds the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seats: Vec<Arc<str>>,
    /// It is to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// What keeps it, each name once, in order.
    #[serde(default)]
    pub holds: Vec<Hold>,
    /// What a newer agent wrote beside it.
    #[serde(skip)]
    pub unknown: Unknown,
}

/// Where a host is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its first member is on its way in.
    Joining,
    /// It has a member.
    Running,
    /// It had one.
    Left,
}

/// Who wants a host to go, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mark {
    pub by: Arc<str>,
    #[serde(default)]
    pub why: Arc<str>,
}

/// While it stands its host is not to be taken away, and its member is not removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hold {
    pub name: Arc<str>,
    pub owner: Arc<str>,
    #[serde(default)]
    pub why: Arc<str>,
}

impl Hold {
    /// The hold for the members that a host carries.
    fn quorum() -> Self {
        Self { name: QUORUM.into(), owner: OWNER.into(), why: "it carries a member that votes".into() }
    }

    /// Whether agents put and lift it themselves.
    pub fn is_own(&self) -> bool {
        *self.owner == *OWNER && *self.name == *QUORUM
    }
}

impl HostRecord {
    /// Of a host that carries nothing yet.
    pub fn joining(host_name: Arc<str>) -> Self {
        let (members, mark, holds) = (Vec::new(), None, Vec::new());
        Self { host_name, phase: Phase::Joining, members, seats: Vec::new(), mark, holds, unknown: Unknown::default() }
    }

    pub fn is_marked(&self) -> bool {
        self.mark.is_some()
    }

    /// Whether the agents' own hold stands.
    pub fn is_held(&self) -> bool {
        self.holds.iter().any(Hold::is_own)
    }

    /// Whether somebody has taken the agents' hold off a host that is to go.
    pub fn is_let_go(&self) -> bool {
        self.phase == Phase::Running && self.is_marked() && !self.is_held()
    }

    /// The first hold of somebody else.
    pub fn others_hold(&self) -> Option<&Hold> {
        self.holds.iter().find(|hold| !hold.is_own())
    }

    pub fn carries(&self, member: MemberId) -> bool {
        self.members.contains(&member)
    }

    /// The same, with this member and the agents' hold.
    pub fn holding(&self, member: MemberId) -> Self {
        let mut next = self.with_hold(Hold::quorum());
        next.members.push(member);
        next.members.sort();
        next.members.dedup();
        next
    }

    /// The same, whose members have these names.
    pub fn named(&self, seats: impl IntoIterator<Item = Arc<str>>) -> Self {
        let mut next = self.clone();
        next.seats = seats.into_iter().collect();
        next.seats.sort();
        next.seats.dedup();
        next
    }

    /// The same with a hold, in the place of one of its name.
    pub fn with_hold(&self, hold: Hold) -> Self {
        let mut next = self.without_hold(&hold.name);
        next.holds.push(hold);
        next.holds.sort_by(|one, other| one.name.cmp(&other.name));
        next
    }

    /// The same without the hold of this name.
    pub fn without_hold(&self, name: &str) -> Self {
        let mut next = self.clone();
        next.holds.retain(|hold| *hold.name != *name);
        next
    }

    /// The same in another phase.
    pub fn in_phase(&self, phase: Phase) -> Self {
        Self { phase, ..self.clone() }
    }

    /// The same, of a host that carries nothing any more: neither mark nor hold of ours.
    pub fn left(&self) -> Self {
        let next = self.without_hold(QUORUM);
        Self { phase: Phase::Left, members: Vec::new(), mark: None, ..next }
    }
}

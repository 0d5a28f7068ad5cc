//! What a run of Scale or Replace says of the members: who is to be listed, who goes, who is on the way in.
//!
//! It is a part of the run, so every write of it compares the run: two hosts cannot both take the last place for a learner, and
//! what is counted cannot change between the counting and the write. Source: agent/MEMBERS.md.

use std::sync::Arc;

use proto::MemberId;
use serde::{Deserialize, Serialize};

use super::{AttemptId, host_id::HostId};

/// Written with the run, and from then on with each step's end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Membership {
    /// Who is to be listed, in order of id, newcomers apart. Anybody else is there by somebody else's hand.
    pub expected: Vec<Expected>,
    /// Who is to go, as the run began. By id: a name may be given again.
    #[serde(default)]
    pub leaving: Vec<MemberId>,
    /// Newcomers, until they vote.
    #[serde(default)]
    pub joins: Vec<Join>,
    /// The step whose call may have been sent: only its end ends it. Before that it may be given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<AttemptId>,
}

/// A member that is to be listed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Expected {
    pub member: MemberId,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_learner: bool,
}

/// A newcomer on its way. It costs no quorum, and may stand beside a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Join {
    /// The newcomer's name.
    pub seat: Arc<str>,
    pub host: HostId,
    /// The host's name, for people.
    pub host_name: Arc<str>,
    /// Tells this try from the one before it.
    pub attempt: AttemptId,
    /// Where the others are to reach it, as it is added.
    pub peer_urls: Vec<String>,
    /// Its id, once it is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<MemberId>,
    pub stage: Stage,
}

/// How far a newcomer is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It has a place among the learners. Its host may have asked for it to be added.
    Reserved,
    /// It is listed, and was never started.
    Added,
    /// Its process was started, or is about to be: without its data its id is of no use any more.
    Starting,
    /// It is taken back: nobody promotes it.
    GivenUp { why: Arc<str> },
}

/// What a step does to a member's role, other than to restart it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleChange {
    /// A learner becomes a voter.
    Promote,
    /// A member is removed.
    Leave,
}

impl Membership {
    /// The newcomer of this name.
    pub fn join(&self, seat: &str) -> Option<&Join> {
        self.joins.iter().find(|join| *join.seat == *seat)
    }

    /// The newcomer of this host that may have been started, and that has not been given up.
    pub fn begun_by(&self, host: HostId) -> Option<&Join> {
        self.joins.iter().find(|join| join.host == host && join.stage == Stage::Starting)
    }

    pub fn is_expected(&self, member: MemberId) -> bool {
        self.expected.iter().any(|one| one.member == member)
    }

    /// Whether it expects other members than before, of whom none was a newcomer of the run's, and none was to go.
    pub fn accepts(&self, before: &Self) -> bool {
        let came = |one: &Expected| {
            !before.is_expected(one.member) && !before.joins.iter().any(|join| join.member == Some(one.member))
        };
        let went = |one: &Expected| !self.is_expected(one.member) && !before.leaving.contains(&one.member);
        self.expected.iter().any(came) || before.expected.iter().any(went)
    }

    /// The same, with this newcomer as it is now.
    pub fn with_join(&self, join: Join) -> Self {
        let mut next = self.clone();
        match next.joins.iter_mut().find(|one| one.seat == join.seat) {
            Some(one) => *one = join,
            None => next.joins.push(join),
        }
        next
    }

    /// The same, in which nobody of this name is on the way.
    pub fn without_join(&self, seat: &str) -> Self {
        let mut next = self.clone();
        next.joins.retain(|join| *join.seat != *seat);
        next
    }

    /// The same, in which this member votes.
    pub fn with_voter(&self, member: MemberId) -> Self {
        let mut next = self.without(member);
        next.expected.push(Expected { member, is_learner: false });
        next.expected.sort_by_key(|one| one.member);
        next
    }

    /// The same, in which this member is neither listed nor on the way.
    pub fn without(&self, member: MemberId) -> Self {
        let mut next = self.clone();
        next.expected.retain(|one| one.member != member);
        next.joins.retain(|join| join.member != Some(member));
        next
    }
}

//! The whole rollout as it would go from here: its steps, and how it would end.
//!
//! A forecast only: it is asked as if one agent had every member and every step went well. What is really done next is decided
//! again before each step. How it is played is in `world.rs`.

mod world;

use std::{collections::BTreeMap, sync::Arc};

use proto::{ClusterVersion, MemberId, Release};

use super::{
    Me,
    membership::forecast::{MemberAction, Voters},
    order::Rank,
    refusal::{Refusal, Wait},
};
use crate::{
    journal::restart::Direction,
    keys::{Keys, RunResult, change::Change},
    observe::{evidence::Evidence, view::ClusterView},
};
pub(super) use world::foreseen_backup;

/// How the rollout would go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// What would be done, in order.
    pub steps: Vec<Step>,
    pub end: End,
    /// Those that are to be members: an id that stands for each here, and its name.
    pub newcomers: BTreeMap<MemberId, Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its number: `3`, and for the parts of step 3 `3.1`, `3.2` and so on.
    pub id: String,
    pub member: Option<MemberId>,
    /// The name, where members come and go: one that is not listed yet has nothing else.
    pub seat: Option<Arc<str>>,
    /// The host whose agent does it, where it is known.
    pub host: Option<Arc<str>>,
    pub action: Action,
    /// The voters after it, where it changes their number.
    pub voters: Option<Voters>,
    /// Whether there is no way back once this was begun.
    pub is_no_return: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Wait, before anything else.
    Await(Wait),
    /// Look after a member whose step an earlier agent left.
    Repair,
    /// Take a member down and bring it back; the parts follow.
    Restart {
        from: Option<Release>,
        /// What it is to run; `None` where the release stays, or is not known.
        to: Option<Release>,
        direction: Direction,
        /// What it is in the cluster.
        rank: Rank,
    },
    /// Save a member's database.
    BackUp,
    /// Enable a downgrade to this version and have the cluster go there, or cancel it.
    Downgrade(Option<ClusterVersion>),
    /// Pass leadership to this member.
    HandOver(MemberId),
    /// Put the record and stop the process.
    Stop,
    /// Make the other binary and its files the member's own.
    Switch,
    /// Start the process: a part of a step, or a step by itself where a member is down.
    Start,
    /// Wait until the member is ready, and has been for the soak time.
    AwaitReady,
    /// See [`MemberAction`].
    Member(MemberAction),
    /// Hold until a person says so.
    Hold,
    /// Wait until versions, gates and hashes agree everywhere.
    Settle,
    /// Another hop of a way over several releases begins; its steps follow.
    Hop {
        /// Counted from 1.
        number: usize,
        of: usize,
        change: Change,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With every member where the run wants it.
    Done(RunResult),
    /// At once: there is nothing to do.
    NothingToDo,
    Refused(Refusal),
    /// It cannot be told how it goes on.
    Unforeseen,
}

/// How the rollout would go for everybody, from what the keys and the view say, and which members of this host are `down`.
pub fn forecast(me: &Me, keys: &Keys, seen: (&ClusterView, &Evidence), down: &[MemberId]) -> Forecast {
    let (steps, end) = world::play(me, keys, seen, down);
    Forecast { steps, end, newcomers: BTreeMap::new() }
}

impl Forecast {
    /// The step after whose start there is no way back, if there is one.
    pub fn no_return(&self) -> Option<&Step> {
        self.steps.iter().find(|step| step.is_no_return)
    }

    /// The members that would be started because they are down.
    pub fn started(&self) -> Vec<MemberId> {
        let is_whole = |step: &&Step| step.action == Action::Start && !step.id.contains('.');
        self.steps.iter().filter(is_whole).filter_map(|step| step.member).collect()
    }

    /// How often this is done to a member that comes or goes.
    pub fn members(&self, action: impl Fn(MemberAction) -> bool) -> usize {
        let is_it = |step: &&Step| matches!(step.action, Action::Member(one) if action(one));
        self.steps.iter().filter(is_it).count()
    }

    /// Whether any member would be restarted, come or go.
    pub fn changes_anything(&self) -> bool {
        self.restarts() > 0 || self.members(|_| true) > 0
    }

    /// How many members would be taken down.
    pub fn restarts(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.action, Action::Restart { .. })).count()
    }
}

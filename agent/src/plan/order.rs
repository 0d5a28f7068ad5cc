//! Who goes when: members that are not ready, then learners, then followers, the leader last; and when a
//! host waits for another, or ends its part.
//!
//! Source: ARCHITECTURE.md, "Who goes when".

use proto::MemberId;

use super::{
    Case, Finish, Go, Next, no_return,
    quorum::{Objection, quorum},
    refusal::{Refusal, Wait},
    shared, target,
};
use crate::{
    journal::progress::Leg,
    observe::view::{ClusterView, Member, Role},
};

/// What a member is in the cluster when its turn comes; in the order of going, first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Not ready.
    NotReady,
    /// Without a vote.
    Learner,
    /// With one.
    Follower,
    /// The leader.
    Leader,
}

pub(super) fn standing(view: &ClusterView, member: &Member) -> Standing {
    match member.role {
        _ if !member.is_ready() => Standing::NotReady,
        Role::Learner => Standing::Learner,
        Role::Voter if view.is_leader(member.id) => Standing::Leader,
        Role::Voter => Standing::Follower,
    }
}

pub(super) fn order(case: &Case) -> Next {
    let is_mine = |member: &&Member| case.me.owns.contains(&member.id);
    let may_be_picked = |member: &&Member| shared::only(case).is_none_or(|only| only == member.id);
    let pick = case.undone().filter(is_mine).filter(may_be_picked).min_by_key(|m| (standing(case.view, m), m.id));
    match pick {
        None => my_part_is_done(case),
        Some(pick) => obstacle(case, pick).unwrap_or_else(|| go(case, pick)),
    }
}

/// My members are at their target: wait while every other undone member has a live agent, else end.
fn my_part_is_done(case: &Case) -> Next {
    let is_open = |m: &&Member| !m.is_ready() || !target::is_at(case, m, case.leg());
    let (mine, left): (Vec<MemberId>, Vec<MemberId>) =
        case.view.members.iter().filter(is_open).map(|m| m.id).partition(|id| case.me.owns.contains(id));
    match mine.first() {
        Some(member) => Next::Wait(Wait::Ready { member: *member }),
        None if left.iter().all(|member| case.keys.has_participant(*member)) => {
            Next::Wait(Wait::Others { members: left })
        }
        None if !case.gathered() => Next::Wait(Wait::Gather),
        None => Next::Finish(Finish::Partial { left }),
    }
}

fn obstacle(case: &Case, pick: &Member) -> Option<Next> {
    if pick.is_catching_up() {
        return Some(Next::Wait(Wait::Ready { member: pick.id }));
    }
    match quorum(case.me, case.view, pick.id) {
        Some(Objection::Below(refusal)) => return Some(Next::Refuse(refusal)),
        Some(Objection::AnotherIsSick(other)) => return Some(another_is_sick(case, other)),
        None => {}
    }
    if let Some(needed) = case.kind().before_member(case, pick) {
        return Some(needed);
    }
    if case.leg() == Leg::Back && case.changes_minor() {
        no_way_back(case, pick).or_else(|| others_go_first(case, pick))
    } else {
        others_go_first(case, pick)
    }
}

/// What would close the way back once the member is down: better seen before it is stopped.
fn no_way_back(case: &Case, pick: &Member) -> Option<Next> {
    if super::has_no_way_back(case, Some(pick.id)) {
        return Some(Next::Refuse(Refusal::NoWayBack));
    }
    case.kind().old_starts_below()?;
    match no_return::witness_missing(case.view, pick.id)? {
        no_return::Missing::Readiness(other) => Some(another_is_sick(case, other)),
        no_return::Missing::Version(member) => Some(Next::Refuse(Refusal::NoClusterVersion { member })),
    }
}

pub(super) fn another_is_sick(case: &Case, other: MemberId) -> Next {
    let is_awaited = case.me.owns.contains(&other)
        || case.keys.has_participant(other)
        || case.view.member(other).is_some_and(Member::is_catching_up);
    match is_awaited {
        true => Next::Wait(Wait::Ready { member: other }),
        false if !case.gathered() => Next::Wait(Wait::Gather),
        false => Next::Refuse(Refusal::NotReady { member: other }),
    }
}

/// A host lets members of an earlier standing go first; not under its own member's failure mark, where nobody
/// else may go, and all would wait for one another.
fn others_go_first(case: &Case, pick: &Member) -> Option<Next> {
    if shared::only(case).is_some() {
        return None;
    }
    let standing_of = |member: &Member| standing(case.view, member);
    let earlier = case.undone().filter(|m| standing_of(m) < standing_of(pick) && !case.me.owns.contains(&m.id));
    let (awaited, alone): (Vec<MemberId>, Vec<MemberId>) =
        earlier.map(|member| member.id).partition(|member| case.keys.has_participant(*member));
    match (awaited.is_empty(), alone.is_empty()) {
        (false, _) => Some(Next::Wait(Wait::Others { members: awaited })),
        (true, false) if !case.gathered() => Some(Next::Wait(Wait::Gather)),
        _ => None,
    }
}

fn go(case: &Case, pick: &Member) -> Next {
    let leg = case.leg();
    let hand_over = match case.view.is_leader(pick.id) {
        false => None,
        true => match successor(case, pick.id, leg) {
            None if !case.me.allow_downtime => return Next::Refuse(no_successor(case, pick.id)),
            successor => successor,
        },
    };
    Next::Go(Go { member: pick.id, leg, hand_over })
}

/// A ready voter to lead next: one that is done already if there is one, else one that does not go next,
/// as far as its host takes no part.
fn successor(case: &Case, leader: MemberId, leg: Leg) -> Option<MemberId> {
    let ready = case.view.voters().filter(|m| m.id != leader && m.is_ready());
    ready.min_by_key(|m| (!target::is_at(case, m, leg), case.keys.has_participant(m.id), m.id)).map(|m| m.id)
}

fn no_successor(case: &Case, down: MemberId) -> Refusal {
    Refusal::BelowQuorum { down, standing: 0, needed: case.view.voters().count() / 2 + 1 }
}

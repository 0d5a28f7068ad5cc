//! Who goes when: members that are not ready, then learners, then followers, the leader last; and when a
//! host waits for another, or ends its part.
//!
//! Source: agent/PROTOCOL.md, "Who goes when".

use proto::MemberId;

use super::{
    Case, Finish, Next,
    action::{Action, Restart},
    refusal::{Refusal, Wait},
    rules::{self, failed},
    target,
};
use crate::{
    journal::restart::Direction,
    observe::view::{ClusterView, Member, Role},
};

/// What a member is in the cluster when its turn comes; in the order of going, first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    NotReady,
    Learner,
    Follower,
    Leader,
}

pub(crate) fn rank(view: &ClusterView, member: &Member) -> Rank {
    match member.role {
        _ if !member.is_ready() => Rank::NotReady,
        Role::Learner => Rank::Learner,
        Role::Voter if view.is_leader(member.id) => Rank::Leader,
        Role::Voter => Rank::Follower,
    }
}

pub(super) fn order(case: &Case) -> Next {
    let is_mine = |member: &&Member| case.me.seats.has(member.id);
    let may_be_picked = |member: &&Member| failed::only(case).is_none_or(|only| only == member.id);
    let pick = case.undone().filter(is_mine).filter(may_be_picked).min_by_key(|m| (rank(case.view, m), m.id));
    match pick {
        None => my_part_is_done(case),
        Some(pick) => rules::before_a_member(case, pick).unwrap_or_else(|| go(case, pick)),
    }
}

/// My members are at their target: wait while every other undone member has a live agent, else end.
fn my_part_is_done(case: &Case) -> Next {
    let is_open = |m: &&Member| !m.is_ready() || !target::is_at(case, m, case.direction());
    let (mine, left): (Vec<MemberId>, Vec<MemberId>) =
        case.view.members.iter().filter(is_open).map(|m| m.id).partition(|id| case.me.seats.has(*id));
    match mine.first() {
        Some(member) => Next::Wait(Wait::Ready { member: *member }),
        None if left.iter().all(|member| case.keys.has_participant(*member)) => {
            Next::Wait(Wait::Others { members: left })
        }
        None if !case.is_window_over() => Next::Wait(Wait::OthersToJoin),
        None => Next::Finish(Finish::Partial { left }),
    }
}

pub(super) fn another_is_sick(case: &Case, other: MemberId) -> Next {
    let is_awaited = case.me.seats.has(other)
        || case.keys.has_participant(other)
        || case.view.member(other).is_some_and(Member::is_catching_up);
    match is_awaited {
        true => Next::Wait(Wait::Ready { member: other }),
        false if !case.is_window_over() => Next::Wait(Wait::OthersToJoin),
        false => Next::Refuse(Refusal::NotReady { member: other }),
    }
}

fn go(case: &Case, pick: &Member) -> Next {
    let direction = case.direction();
    let hand_over = match case.view.is_leader(pick.id) {
        false => None,
        true => match successor(case, pick.id, direction) {
            None if !case.me.allow_downtime => return Next::Refuse(no_successor(case, pick.id)),
            successor => successor,
        },
    };
    Next::Step(Action::Restart(Restart { member: pick.id, direction, hand_over }))
}

/// A ready voter to lead next: one that is done already if there is one, else one that does not go next,
/// as far as its host takes no part.
fn successor(case: &Case, leader: MemberId, direction: Direction) -> Option<MemberId> {
    let ready = case.view.voters().filter(|m| m.id != leader && m.is_ready());
    ready.min_by_key(|m| (!target::is_at(case, m, direction), case.keys.has_participant(m.id), m.id)).map(|m| m.id)
}

fn no_successor(case: &Case, down: MemberId) -> Refusal {
    Refusal::BelowQuorum { down, standing: 0, needed: case.view.voters().count() / 2 + 1 }
}

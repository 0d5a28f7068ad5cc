//! When a member may go.
//!
//! One that is ready goes by its own host's hand, once its replacement votes, or where the target has no seat for it. One that is
//! not is removed by whoever takes part, since its own host cannot. Source: agent/MEMBERS.md, "Who may".

use proto::MemberId;

use super::{Move, RoleStep, Standing, hold, is_learner, join, waits_for};
use crate::{
    keys::{change::Change, membership::RoleChange},
    observe::view::Member,
    plan::{
        Finish, Next,
        refusal::{Refusal, Wait},
    },
};

pub(super) fn of_the_ready(standing: &Standing, leaver: &Member) -> Option<Next> {
    objection_to_the_ready(standing, leaver)
        .or_else(|| hold::of_others(standing, leaver))
        .or_else(|| Some(hand_over(standing, leaver).unwrap_or(Next::Members(Move::Lock(step_of(leaver))))))
}

fn step_of(leaver: &Member) -> RoleStep {
    RoleStep { member: leaver.id, change: RoleChange::Leave }
}

/// What keeps a member that is ready from going.
fn objection_to_the_ready(standing: &Standing, leaver: &Member) -> Option<Next> {
    let Standing { case, membership, .. } = *standing;
    if is_learner(leaver) {
        return None;
    }
    if let Change::Replace(replace) = &case.me.intent.change
        && standing.voter(&replace.by).is_none()
        && case.rules.replacement_votes_first
    {
        let by = vec![replace.by.clone()];
        let mut seats = case.keys.agents.values().flat_map(|agent| &agent.value.seats.0);
        let is_awaited = seats.any(|seat| seat.name == replace.by) || !case.is_window_over();
        return Some(match is_awaited {
            true => Next::Wait(Wait::Seats { seats: by }),
            false => Next::Finish(Finish::Unseated { seats: by }),
        });
    }
    if let Some(sick) = standing.sick_beside(leaver.id) {
        return Some(waits_for(case, sick.id));
    }
    if case.view.voters().count() < 2 {
        return Some(below(standing, leaver.id, 0, 1));
    }
    // Whoever leads goes last of those that go: else leadership might pass from one to the next.
    let other = standing.leavers().find(|other| other.id != leaver.id);
    let is_waited_for = |other: &&Member| case.keys.has_participant(other.id) || !case.is_window_over();
    other
        .filter(|_| case.view.is_leader(leaver.id))
        .filter(is_waited_for)
        .map(|_| Next::Wait(Wait::Others { members: membership.leaving.clone() }))
}

/// It hands over to one that stays. Without one the removal itself is refused.
pub(super) fn hand_over(standing: &Standing, leaver: &Member) -> Option<Next> {
    let Standing { case, membership, .. } = *standing;
    let stays = |voter: &&Member| voter.id != leaver.id && voter.is_ready() && !membership.leaving.contains(&voter.id);
    let to = case.view.voters().filter(stays).map(|voter| voter.id).min()?;
    let leads = case.view.is_leader(leaver.id) && leaver.is_ready();
    leads.then_some(Next::Members(Move::HandOver { from: leaver.id, to }))
}

/// The first of those that are to go and are not ready, by whoever looks.
pub(super) fn of_the_dead(standing: &Standing) -> Option<Next> {
    let dead = standing.leavers().find(|member| !member.is_ready())?;
    objection(standing, dead).or(Some(Next::Members(Move::Lock(step_of(dead)))))
}

/// What keeps a member that is to go from going, while no call has been sent.
pub(super) fn objection(standing: &Standing, leaver: &Member) -> Option<Next> {
    let case = standing.case;
    let is_own = case.me.seats.has(leaver.id);
    let found = match leaver.is_ready() {
        true => objection_to_the_ready(standing, leaver),
        // Its own agent brings it up, or says that it cannot.
        false if case.keys.has_participant(leaver.id) && !is_own => Some(Next::Wait(Wait::Ready { member: leaver.id })),
        false if !case.is_window_over() => Some(Next::Wait(Wait::OthersToJoin)),
        false => newcomer_comes_first(standing).or_else(|| objection_to_the_dead(standing, leaver)),
    };
    found.or_else(|| hold::of_others(standing, leaver))
}

/// A newcomer that has what the others have before the dead one goes: where none comes to that, nothing was lost by trying.
fn newcomer_comes_first(standing: &Standing) -> Option<Next> {
    let Standing { case, membership, .. } = *standing;
    let Change::Replace(replace) = &case.me.intent.change else { return None };
    if replace.by == replace.member || !join::takes_a_learner(case) || standing.voter(&replace.by).is_some() {
        return None;
    }
    let learner = membership.join(&replace.by).and_then(|join| case.view.member(join.member?));
    let mut seats = case.keys.agents.values().flat_map(|agent| &agent.value.seats.0);
    let is_at_work = seats.any(|seat| seat.name == replace.by);
    let is_awaited = is_at_work && !learner.is_some_and(Member::is_ready);
    is_awaited.then(|| Next::Wait(Wait::Seats { seats: vec![replace.by.clone()] }))
}

/// What keeps a member that is not ready from being removed: those that stay could not agree without it, either.
pub(super) fn objection_to_the_dead(standing: &Standing, dead: &Member) -> Option<Next> {
    let view = standing.case.view;
    if is_learner(dead) {
        return None;
    }
    let staying: Vec<_> = view.voters().filter(|voter| voter.id != dead.id).collect();
    let (count, ready) = (staying.len(), staying.iter().filter(|voter| voter.is_ready()).count());
    let needed = count / 2 + 1;
    (count == 0 || ready < needed).then(|| below(standing, dead.id, ready, needed))
}

fn below(_: &Standing, down: MemberId, standing: usize, needed: usize) -> Next {
    Next::Refuse(Refusal::BelowQuorum { down, standing, needed })
}

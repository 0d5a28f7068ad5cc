//! A step that stands: whoever holds the baton goes on with it, and ends it.
//!
//! It is deleted at its end alone. A call that was sent takes effect whenever it arrives, and then finds that it was done, or that
//! its member is gone. Source: agent/MEMBERS.md, "Calls without a compare".

use super::{Move, RoleStep, Standing, is_learner, leave, promote, waits_for};
use crate::{
    keys::{At, StepLock, membership::RoleChange},
    observe::view::Member,
    plan::{Next, refusal::Wait, rules},
};

pub(super) fn step(standing: &Standing, lock: &At<StepLock>) -> Next {
    let case = standing.case;
    let StepLock { member, host, role, .. } = lock.value;
    let Some(change) = role else {
        return rules::step_lock(case).unwrap_or(Next::Wait(Wait::Record { member, host }));
    };
    // Whoever put it is at work on it.
    if host != case.me.host && case.keys.agents.contains_key(&host) {
        return Next::Wait(Wait::Record { member, host });
    }
    let found = case.view.member(member);
    let step = RoleStep { member, change };
    match change {
        RoleChange::Promote => promoted(standing, step, found),
        RoleChange::Leave => left(standing, step, found),
    }
}

fn promoted(standing: &Standing, step: RoleStep, found: Option<&Member>) -> Next {
    let membership = standing.membership;
    let member = step.member;
    match found {
        None if standing.is_listed(member) => Next::Wait(Wait::Answer),
        None => Next::Members(Move::End(membership.without(member))),
        Some(voter) if !is_learner(voter) && voter.is_ready() => {
            Next::Members(Move::End(membership.with_voter(member)))
        }
        // Somebody sees to it, or is to come.
        Some(newcomer) if !newcomer.is_ready() => match is_awaited(standing, newcomer) {
            true => Next::Wait(Wait::Ready { member }),
            false => Next::Members(Move::Turn(member)),
        },
        Some(_) => promote::objection(standing).unwrap_or(match standing.is_listed(member) {
            true => Next::Members(Move::Call(step)),
            false => Next::Wait(Wait::Answer),
        }),
    }
}

fn is_awaited(standing: &Standing, newcomer: &Member) -> bool {
    let Standing { case, membership, .. } = *standing;
    let join = membership.joins.iter().find(|join| join.member == Some(newcomer.id));
    let is_there = |host| case.keys.agents.contains_key(host);
    join.is_some_and(|join| is_there(&join.host)) || newcomer.is_catching_up() || !case.is_window_over()
}

fn left(standing: &Standing, step: RoleStep, found: Option<&Member>) -> Next {
    let Standing { case, membership, .. } = *standing;
    let member = step.member;
    match (standing.is_listed(member), found) {
        // No list has it any more: whoever answers agrees.
        (false, None) => Next::Members(Move::End(membership.without(member))),
        (false, Some(_)) => Next::Wait(Wait::Answer),
        (true, None) => Next::Wait(Wait::Answer),
        (true, Some(leaver)) => {
            if let Some(next) = leave::hand_over(standing, leaver) {
                return next;
            }
            // The call may have been sent: then only what holds for the dead can keep it back.
            leave::objection_to_the_dead(standing, leaver).or_else(|| sick(standing, leaver)).unwrap_or_else(|| {
                match case.view.leader() {
                    Some(_) => Next::Members(Move::Call(step)),
                    None => Next::Wait(Wait::Answer),
                }
            })
        }
    }
}

/// While a member that is to go is ready, the others are to be, too.
fn sick(standing: &Standing, leaver: &Member) -> Option<Next> {
    let sick = standing.sick_beside(leaver.id).filter(|_| leaver.is_ready() && !is_learner(leaver))?;
    Some(waits_for(standing.case, sick.id))
}

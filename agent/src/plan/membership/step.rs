//! A step that stands: whoever holds the baton goes on with it, and ends it.
//!
//! Once a call may have been sent it is deleted at its end alone: that takes effect whenever it arrives, and then finds that it was
//! done, or that its member is gone. Before the first call the run says so; until then the step may be
//! given up. Source: agent/MEMBERS.md, "Calls without a compare".

use super::{Move, RoleStep, Standing, hold, is_learner, leave, promote, waits_for};
use crate::{
    keys::{
        At, StepLock,
        membership::{Membership, RoleChange},
    },
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
    let is_called = standing.membership.called == Some(lock.value.attempt) || !case.rules.call_is_said_first;
    match change {
        RoleChange::Promote => promoted(standing, step, is_called, found),
        RoleChange::Leave => left(standing, step, is_called, found),
    }
}

fn promoted(standing: &Standing, step: RoleStep, is_called: bool, found: Option<&Member>) -> Next {
    let membership = standing.membership;
    let member = step.member;
    match found {
        None if standing.is_listed(member) => Next::Wait(Wait::Answer),
        None => Next::Members(Move::End(membership.without(member))),
        Some(voter) if !is_learner(voter) && voter.is_ready() => {
            Next::Members(Move::End(membership.with_voter(member)))
        }
        Some(learner) if is_learner(learner) && !is_called => match promote::objection(standing) {
            // Its own host puts the hold, or gives it up.
            None if hold::keeps_from_voting(standing, member) => give_up(standing),
            None if learner.is_ready() || !standing.case.rules.learner_is_ready => call_next(standing),
            _ => give_up(standing),
        },
        Some(newcomer) if !newcomer.is_ready() && standing.case.rules.learner_is_ready => come_back(standing, newcomer),
        Some(_) => match promote::objection(standing) {
            None if standing.is_listed(member) => Next::Members(Move::Call(step)),
            None => Next::Wait(Wait::Answer),
            // A voter is away for good, and the newcomer would keep the lock for as long.
            Some(Next::Refuse(_)) => Next::Members(Move::Turn(member)),
            // Who is to go has gone: its removal comes first now, and its own host, which may know that, waits for this step.
            Some(_) if standing.leavers().any(|leaver| !leaver.is_ready()) => Next::Members(Move::Turn(member)),
            Some(next) => next,
        },
    }
}

/// No call was sent: the step goes, and what is to be done is thought of anew.
fn give_up(standing: &Standing) -> Next {
    Next::Members(Move::End(standing.membership.clone()))
}

/// The run says that a call may have been sent, before it is.
fn call_next(standing: &Standing) -> Next {
    let attempt = standing.case.keys.step.as_ref().map(|lock| lock.value.attempt);
    Next::Members(Move::Note(Membership { called: attempt, ..standing.membership.clone() }))
}

/// The newcomer of a step is to be ready again, or it is taken back.
fn come_back(standing: &Standing, newcomer: &Member) -> Next {
    let Standing { case, membership, .. } = *standing;
    let member = newcomer.id;
    let join = membership.joins.iter().find(|join| join.member == Some(member));
    // Of its own newcomer a host sees itself whether it can come back: nobody else would give it up while that host is here.
    if let Some(join) = join.filter(|join| join.host == case.me.host) {
        return match standing.place_of(&join.seat, member) {
            Some((at, false)) if case.join_failure.is_none() => Next::Members(Move::Start(at, member)),
            Some((_, true)) => Next::Wait(Wait::Ready { member }),
            _ => Next::Members(Move::Turn(member)),
        };
    }
    let is_there = |host| case.keys.agents.contains_key(host);
    let is_awaited = join.is_some_and(|join| is_there(&join.host)) || newcomer.is_catching_up();
    match is_awaited || !case.is_window_over() {
        true => Next::Wait(Wait::Ready { member }),
        false => Next::Members(Move::Turn(member)),
    }
}

fn left(standing: &Standing, step: RoleStep, is_called: bool, found: Option<&Member>) -> Next {
    let Standing { case, membership, .. } = *standing;
    let member = step.member;
    match (standing.is_listed(member), found) {
        // No list has it any more: whoever answers agrees.
        (false, None) => Next::Members(Move::End(membership.without(member))),
        (false, Some(_)) => Next::Wait(Wait::Answer),
        (true, None) => Next::Wait(Wait::Answer),
        // Nothing was sent yet. One that was dead may have come back, and one that it makes room for may have gone.
        (true, Some(leaver)) if membership.leaving.contains(&member) && !is_called => {
            match leave::objection(standing, leaver) {
                Some(_) => give_up(standing),
                None => leave::hand_over(standing, leaver).unwrap_or_else(|| call_next(standing)),
            }
        }
        (true, Some(leaver)) => {
            if let Some(next) = leave::hand_over(standing, leaver) {
                return next;
            }
            // The call may have been sent: then only what holds for the dead can keep it back. It waits for who comes back.
            let waits = || sick(standing, leaver).filter(|next| matches!(next, Next::Wait(_)));
            leave::objection_to_the_dead(standing, leaver).or_else(waits).unwrap_or_else(|| match case.view.leader() {
                Some(_) => Next::Members(Move::Call(step)),
                None => Next::Wait(Wait::Answer),
            })
        }
    }
}

/// While a member that is to go is ready, the others that stay are to be, too. Another that is to go may never come back, and its host
/// waits for this step.
fn sick(standing: &Standing, leaver: &Member) -> Option<Next> {
    let stays = |voter: &&Member| voter.id != leaver.id && !standing.membership.leaving.contains(&voter.id);
    let sick = standing.case.view.voters().filter(stays).find(|voter| !voter.is_ready());
    let sick = sick.filter(|_| leaver.is_ready() && !is_learner(leaver))?;
    Some(waits_for(standing.case, sick.id))
}

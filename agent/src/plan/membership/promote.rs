//! When a learner may vote. The same rule lets the lock be put, and the call be made.

use super::{Move, RoleStep, Standing, enough_to_promote, waits_for};
use crate::{keys::membership::RoleChange, observe::view::Member, plan::Next};

/// Puts the lock for this learner, which is ready.
pub(super) fn promote(standing: &Standing, learner: &Member) -> Next {
    let step = RoleStep { member: learner.id, change: RoleChange::Promote };
    objection(standing).unwrap_or(Next::Members(Move::Lock(step)))
}

/// What keeps every learner from voting: with one more voter, one that is not there costs more.
pub(super) fn objection(standing: &Standing) -> Option<Next> {
    let view = standing.case.view;
    let sick = view.voters().find(|voter| !voter.is_ready());
    let (voters, ready) = (view.voters().count(), view.voters().filter(|voter| voter.is_ready()).count());
    match sick {
        Some(sick) => Some(waits_for(standing.case, sick.id)),
        None if !enough_to_promote(voters, ready) => view.voters().next().map(|any| waits_for(standing.case, any.id)),
        None => None,
    }
}

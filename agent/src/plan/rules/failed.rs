//! A step that failed marks the run: under the mark nobody goes but the failed member's owner.
//!
//! A failed member that leads goes at once under its own mark. If it waited for the others to go first, and they wait for the
//! mark, nobody would ever go.

use crate::{
    keys::RunState,
    plan::{
        Case, Next, owner,
        refusal::{Refusal, Wait},
        target,
    },
};
use proto::MemberId;

pub(super) fn failed(case: &Case) -> Option<Next> {
    let RunState::Failed { member, why, was } = &case.current_run()?.state else { return None };
    if is_owner(case, *member) {
        let done = case.view.member(*member).is_none_or(|m| m.is_ready() && target::is_at(case, m, case.direction()));
        return done.then(|| Next::Move { to: (*was).into(), at_rest: false });
    }
    if !case.rules.owner_lifts_the_mark {
        return Some(Next::Move { to: (*was).into(), at_rest: false });
    }
    if owner::is_removed(case, *member) {
        return Some(Next::Move { to: (*was).into(), at_rest: true });
    }
    if case.keys.has_participant(*member) || !case.is_window_over() {
        return Some(Next::Wait(Wait::FailedOwner { member: *member }));
    }
    Some(Next::Refuse(Refusal::Failed { member: *member, why: why.clone() }))
}

fn is_owner(case: &Case, member: MemberId) -> bool {
    case.me.seats.has(member)
}

/// The member whose failed step is this host's own to try again; no other may go under its mark.
pub(in crate::plan) fn only(case: &Case) -> Option<MemberId> {
    match case.current_run()?.state {
        RunState::Failed { member, .. } if is_owner(case, member) => Some(member),
        _ => None,
    }
}

//! Nobody is stopped on its way back where the old binary would not start.

use crate::{
    journal::restart::Direction,
    observe::view::Member,
    plan::{Case, Next, no_return, order, refusal::Refusal},
};

/// What would close the way back once the member is down: better seen before it is stopped.
pub(super) fn way_back(case: &Case, pick: &Member) -> Option<Next> {
    let is_asked = case.direction() == Direction::Back && case.changes_minor();
    is_asked.then_some(())?;
    if no_return::has_no_way_back(case, Some(pick.id)) {
        return Some(Next::Refuse(Refusal::NoWayBack));
    }
    case.kind().old_starts_below()?;
    match no_return::witness_missing(case.view, pick.id)? {
        no_return::Missing::Readiness(other) => Some(order::another_is_sick(case, other)),
        no_return::Missing::Version(member) => Some(Next::Refuse(Refusal::NoClusterVersion { member })),
    }
}

//! What stands in the cluster and would keep this kind of change from its end.

use crate::{
    journal::restart::Direction,
    plan::{Case, Next, Verb},
};

/// The way back needs nothing of the kind.
pub(super) fn hindrance(case: &Case) -> Option<Next> {
    let is_back = case.me.verb == Verb::Rollback || case.direction() == Direction::Back;
    case.kind().hindrance(case.view).filter(|_| !is_back).map(Next::Refuse)
}

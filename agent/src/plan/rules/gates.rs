//! Gates are expected: the target must have them.

use crate::{
    journal::restart::Direction,
    observe::view::Member,
    plan::{Case, Next, Verb, refusal::Refusal, target},
};

/// A member at its target that has no gates shows that the target has none; an older one can not tell.
pub(super) fn gates(case: &Case) -> Option<Next> {
    let is_asked =
        !case.me.intent.gates.is_empty() && case.me.verb != Verb::Rollback && case.direction() == Direction::Forward;
    let has_none = |member: &&Member| {
        member.report().is_some_and(|report| report.gates.is_none()) && target::has_its_release(case, member)
    };
    let member = case.view.members.iter().find(has_none).filter(|_| is_asked)?;
    Some(Next::Refuse(Refusal::GatesUnsupported { member: member.id }))
}

//! A member that catches up is waited for.

use crate::{
    observe::view::Member,
    plan::{Case, Next, refusal::Wait},
};

pub(super) fn catching_up(_: &Case, pick: &Member) -> Option<Next> {
    pick.is_catching_up().then_some(Next::Wait(Wait::Ready { member: pick.id }))
}

//! Outside its window a host begins no step; one in hand ends. The way back waits for no window. Source: agent/PROTOCOL.md, "Pauses and
//! windows".

use crate::{
    journal::restart::Direction,
    observe::view::Member,
    plan::{Case, Next, refusal::Wait},
};

pub(super) fn before_member(case: &Case, _: &Member) -> Option<Next> {
    window(case)
}

pub(super) fn window(case: &Case) -> Option<Next> {
    let opens = case.closed_until.cloned().filter(|_| case.direction() == Direction::Forward)?;
    Some(Next::Wait(Wait::Window { opens }))
}

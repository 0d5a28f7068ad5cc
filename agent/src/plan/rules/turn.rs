//! There may be no way back any more.

use crate::{
    keys::{Going, RunState},
    plan::{Case, Next, no_return},
};

/// A run that goes back and finds no voter on the old release goes forward again.
pub(super) fn turn(case: &Case) -> Option<Next> {
    let turns = case.current_run()?.going()? == Going::RollingBack && no_return::has_no_way_back(case, None);
    turns.then_some(Next::Move { to: RunState::Rolling, at_rest: true })
}

//! A run that waits for a person before the point of no return.

use crate::{
    keys::{Finalize, RunState},
    plan::{Case, Finish, Next},
};

/// `finalize: manual`: the run stops where one member of the old minor is left, and goes on when a person says so.
pub(super) fn hold(case: &Case) -> Option<Next> {
    let run = case.current_run()?;
    if case.me.intent.finalize != Finalize::Manual || !case.changes_minor() {
        return None;
    }
    let mut old = case.old();
    let (last, more) = (old.next()?, old.next().is_some());
    match (&run.state, more) {
        (RunState::Rolling, false) => Some(Next::Move { to: RunState::Held { member: last }, at_rest: false }),
        (RunState::Held { .. }, true) => Some(Next::Move { to: RunState::Rolling, at_rest: false }),
        (RunState::Held { member }, false) => Some(Next::Finish(Finish::Held { member: *member })),
        _ => None,
    }
}

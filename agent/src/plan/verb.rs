//! What the operator typed, held against the state of the run: when `rollback`, `finalize` and `resume`
//! change it, and when `run` must not. Source: ARCHITECTURE.md, R-8 to R-10.

use super::{Case, Finish, Next, Verb, no_return, refusal::Refusal, shared};
use crate::rollout::keys::{Change, RunState};

pub(super) fn verb(case: &Case) -> Option<Next> {
    match case.me.verb {
        Verb::Rollback => rollback(case),
        Verb::Finalize => finalize(case).or_else(|| opposed(case)),
        Verb::Resume => resume(case).or_else(|| opposed(case)),
        Verb::Run => opposed(case),
    }
}

fn opposed(case: &Case) -> Option<Next> {
    let run = case.standing()?;
    let turns = super::turn(case).is_some();
    (shared::opposes(case.me.verb, run) && !turns).then_some(Next::Refuse(Refusal::GoingBack))
}

fn rollback(case: &Case) -> Option<Next> {
    let Some(run) = case.standing() else { return Some(Next::Refuse(Refusal::NothingToRollBack)) };
    if matches!(run.intent.change, Change::Restart { .. }) {
        return Some(Next::Refuse(Refusal::NothingToRollBack));
    }
    if run.is_going_back() {
        return None;
    }
    if case.changes_minor() && !no_return::another_is_old(&case.me.intent, case.view, None) {
        return Some(Next::Refuse(Refusal::NoWayBack));
    }
    Some(Next::Move { to: RunState::RollingBack, at_rest: true })
}

fn finalize(case: &Case) -> Option<Next> {
    if !case.changes_minor() {
        return Some(Next::Finish(Finish::NothingToDo));
    }
    let left: Vec<_> = case.undone().map(|member| member.id).collect();
    let is_last = left.len() == 1;
    match case.standing().map(|run| &run.state) {
        Some(RunState::Held { .. } | RunState::Rolling) if is_last => {
            Some(Next::Move { to: RunState::Approved, at_rest: true })
        }
        Some(RunState::Approved) if left.iter().any(|member| !case.me.owns.contains(member)) => {
            Some(Next::Finish(Finish::Approved { left }))
        }
        Some(RunState::Approved | RunState::Failed { .. }) => None,
        _ if left.is_empty() => None,
        _ => Some(Next::Refuse(Refusal::NotHeld)),
    }
}

fn resume(case: &Case) -> Option<Next> {
    match case.standing()?.state {
        RunState::Failed { was, .. } => Some(Next::Move { to: was.into(), at_rest: true }),
        _ => None,
    }
}

//! Whether there is nothing to do, or nothing more.

use crate::{
    keys::{Run, RunResult, RunState},
    observe::view::Member,
    plan::{Case, Finish, Next, Verb, gates, settled},
};

pub(super) fn finished(case: &Case) -> Option<Next> {
    let run = case.keys.run.as_ref().map(|run| &run.value);
    match run {
        Some(Run { id, state: RunState::Done { result }, .. })
            if case.joined == Some(*id) && !is_contradicted(case, *result) =>
        {
            Some(Next::Finish(Finish::Done(*result)))
        }
        _ if case.current_run().is_none() && case.me.verb != Verb::Rollback => {
            case.is_all_there().then(|| nothing_to_do(case))
        }
        _ => None,
    }
}

/// What a key says of the end is believed only where no member says otherwise (I-5): whoever may write the keys could say
/// that all is done.
fn is_contradicted(case: &Case, result: RunResult) -> bool {
    let Some(to) = case.me.intent.change.to() else { return false };
    let is_elsewhere = |member: &Member| member.release().is_some_and(|release| release != to);
    result == RunResult::Reached && case.view.members.iter().any(is_elsewhere)
}

/// Gates and versions that are not as expected are waited for, and told of, by a run in which no member goes.
fn nothing_to_do(case: &Case) -> Next {
    let is_unsettled = || settled::missing_versions(&case.me.intent, case.view, false).is_some();
    match case.me.verb == Verb::Run && (gates::are_contrary(case) || is_unsettled()) {
        true => Next::Begin,
        false => Next::Finish(Finish::NothingToDo),
    }
}

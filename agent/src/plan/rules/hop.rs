//! A way over several releases goes on with the hop that is due.

use crate::{
    keys::RunResult,
    plan::{Case, Finish, Next, Verb, hops},
};

/// Whoever finalizes or rolls back means the run that stands, and no hop after it: once that one is done he is done, too.
pub(super) fn hop(case: &Case) -> Option<Next> {
    let is_of_this_run = matches!(case.me.verb, Verb::Rollback | Verb::Finalize);
    if is_of_this_run && case.current_run().is_none() {
        return None;
    }
    let run = case.keys.run.as_ref().map(|run| &run.value);
    let (intent, way) = (&case.me.intent, case.me.intent.hops.as_ref()?);
    let due = hops::due(intent, run, case.view)?;
    if *due == intent.change {
        return None;
    }
    let is_past = way.number(due) > way.number(&intent.change);
    if is_of_this_run && is_past && case.rules.verb_is_of_its_hop {
        return Some(Next::Finish(Finish::Done(RunResult::Reached)));
    }
    Some(Next::Hop(Box::new(due.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keys::{Intent, Keys, Run, RunState, rules::Rules},
        plan::{
            Me,
            samples::{self, with_release},
        },
    };

    #[test]
    fn what_was_typed_for_a_run_goes_on_with_no_later_hop() {
        let [first, second] = samples::way();
        let to = |intent: &Intent| Some(Next::Hop(Box::new(intent.change.clone())));
        let ends = || Some(Next::Finish(Finish::Done(RunResult::Reached)));
        let reached = RunState::Done { result: RunResult::Reached };
        // What was typed, for which hop, and the run that stands or is over.
        for (verb, about, run, expected) in [
            (Verb::Run, &first, (&first, RunState::Rolling), None),
            (Verb::Run, &first, (&first, reached.clone()), to(&second)),
            (Verb::Run, &first, (&second, RunState::Rolling), to(&second)),
            (Verb::Finalize, &first, (&first, reached.clone()), None),
            (Verb::Finalize, &first, (&second, RunState::Rolling), ends()),
            (Verb::Rollback, &first, (&second, RunState::Rolling), ends()),
            (Verb::Rollback, &second, (&second, RunState::Rolling), None),
            // Its first look says more than was known when it began.
            (Verb::Rollback, &second, (&first, RunState::Rolling), to(&first)),
        ] {
            let me = Me { verb, intent: about.clone(), ..samples::me(&[1]) };
            let mut view = samples::view("1+ 2+ 3+");
            (0..3).for_each(|at| with_release(&mut view, at, "3.5.33"));
            let text = format!("{verb:?} {run:?}");
            let run = Run { intent: run.0.clone(), ..samples::run(run.1) };
            let (rules, keys) = (Rules::default(), Keys { run: Some(samples::at(run)), ..Keys::default() });
            assert_eq!(hop(&samples::case(&me, &rules, &keys, &view)), expected, "{text}");
        }
    }
}

//! A run with another intent, or one that a newer agent has paused, is left alone.

use crate::{
    keys::{Finalize, Intent, RunState},
    plan::{
        Case, Next,
        refusal::{Difference, Refusal},
    },
};

pub(super) fn other_run(case: &Case) -> Option<Next> {
    let run = case.current_run()?;
    if *run.intent != *case.me.intent {
        return Some(Next::Refuse(Refusal::OtherRun {
            differs: differences(&run.intent, &case.me.intent),
            begun_by: run.begun_by.clone(),
            takes_turns: run.intent.change.changes_members() != case.me.intent.change.changes_members(),
        }));
    }
    (run.state == RunState::Paused).then_some(Next::Refuse(Refusal::Paused))
}

/// The parts in which the intent that stands and the one wanted differ.
fn differences(standing: &Intent, wanted: &Intent) -> Vec<Difference> {
    let mut differs = Vec::new();
    let mut add = |part, standing: String, wanted: String| {
        if standing != wanted {
            differs.push(Difference { part, standing, wanted });
        }
    };
    add("cluster", standing.cluster.to_string(), wanted.cluster.to_string());
    let (a, b) = (standing.change.kind(), wanted.change.kind());
    match std::mem::discriminant(&standing.change) == std::mem::discriminant(&wanted.change) {
        true => a.parts().into_iter().zip(b.parts()).for_each(|((part, a), (_, b))| add(part, a, b)),
        false => add("kind", a.phrase(), b.phrase()),
    }
    add("gates.expect", gates(standing), gates(wanted));
    add("strategy.finalize", finalize(standing).into(), finalize(wanted).into());
    differs
}

fn gates(intent: &Intent) -> String {
    match intent.gates.is_empty() {
        true => "none".to_owned(),
        false => intent.gates.iter().map(|(gate, is_on)| format!("{gate}={is_on}")).collect::<Vec<_>>().join(" "),
    }
}

fn finalize(intent: &Intent) -> &'static str {
    match intent.finalize {
        Finalize::Auto => "auto",
        Finalize::Manual => "manual",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        keys::{
            Keys,
            change::{Change, Scale},
            rules::Rules,
        },
        plan::{Me, samples},
    };

    #[test]
    fn a_run_waits_only_for_one_of_another_kind() {
        let (rules, view, upgrade) = (Rules::default(), samples::view("1+ 2+ 3*"), samples::me(&[1]));
        let intent = |intent| Me { intent: Arc::new(intent), ..upgrade.clone() };
        let members = ["1", "2", "3"].map(Arc::from).to_vec();
        let scale = intent(Intent { change: Change::Scale(Scale { members }), ..(*upgrade.intent).clone() });
        let held = intent(Intent { finalize: Finalize::Manual, ..(*upgrade.intent).clone() });
        for (standing, wanted, expected) in
            [(&scale, &upgrade, true), (&upgrade, &scale, true), (&held, &upgrade, false), (&upgrade, &held, false)]
        {
            let run = crate::keys::Run { intent: standing.intent.clone(), ..samples::run(RunState::Rolling) };
            let keys = Keys { run: Some(samples::at(run)), ..Keys::default() };
            let next = other_run(&samples::case(wanted, &rules, &keys, &view));
            let Some(Next::Refuse(Refusal::OtherRun { takes_turns, .. })) = next else { unreachable!("{next:?}") };
            assert_eq!(takes_turns, expected, "{standing:?}");
        }
    }
}

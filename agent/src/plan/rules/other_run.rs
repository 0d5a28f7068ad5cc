//! A run with another intent is left alone.

use crate::{
    keys::{Finalize, Intent, change::Change},
    plan::{
        Case, Next, Verb,
        refusal::{Difference, Refusal},
    },
};

pub(super) fn other_run(case: &Case) -> Option<Next> {
    let run = case.current_run()?;
    if *run.intent != *case.me.intent {
        return Some(Next::Refuse(Refusal::OtherRun {
            differs: differences(&run.intent, &case.me.intent),
            begun_by: run.begun_by.clone(),
            takes_turns: case.me.verb == Verb::Run && take_turns(&run.intent.change, &case.me.intent.change),
        }));
    }
    None
}

/// Whether the later of two runs waits for the earlier: one changes the members and the other restarts them, or both replace
/// one, and have no name in common (L-16). Two scalings contradict each other.
fn take_turns(standing: &Change, wanted: &Change) -> bool {
    match (standing, wanted) {
        (Change::Replace(one), Change::Replace(other)) => {
            [&one.member, &one.by].into_iter().all(|name| *name != other.member && *name != other.by)
        }
        _ => standing.changes_members() != wanted.changes_members(),
    }
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
    // Which hop of a way is gone now is no difference: the whole is compared.
    let (a, b) = (hops(standing), hops(wanted));
    match std::mem::discriminant(&a[0]) == std::mem::discriminant(&b[0]) {
        true => a[0].kind().parts().into_iter().zip(b[0].kind().parts()).for_each(|((part, a), (_, b))| {
            // Where the first hop leads to is no part of a playbook.
            if part != "to" {
                add(part, a, b);
            }
        }),
        false => add("kind", a[a.len() - 1].kind().phrase(), b[b.len() - 1].kind().phrase()),
    }
    if a[0].to().is_some() && b[0].to().is_some() {
        add("to", to(standing), to(wanted));
    }
    add("hops", between(standing), between(wanted));
    if standing.is_on_the_way_of(wanted) {
        add("hop", hop(standing), hop(wanted));
    }
    add("gates.expect", gates(standing), gates(wanted));
    add("strategy.finalize", finalize(standing).into(), finalize(wanted).into());
    add("backup", backup(standing).into(), backup(wanted).into());
    add("strategy.accept_hazards or --accept-hazard", accepted(standing), accepted(wanted));
    differs
}

/// All that it leads over.
fn hops(intent: &Intent) -> &[Change] {
    intent.hops.as_ref().map_or(std::slice::from_ref(&intent.change), |hops| &hops.changes)
}

/// Where the last one leads to.
fn to(intent: &Intent) -> String {
    hops(intent).last().and_then(Change::to).map_or_else(String::new, ToString::to_string)
}

/// More are not told: whoever may write the keys may write a way of thousands.
const MOST_TOLD: usize = 8;

/// Those that come before the last, as a playbook has them.
fn between(intent: &Intent) -> String {
    let hops = hops(intent);
    let between: Vec<_> = hops[..hops.len() - 1].iter().filter_map(Change::to).map(ToString::to_string).collect();
    match between.len() {
        0 => "none".to_owned(),
        1..=MOST_TOLD => between.join(", "),
        count => format!("{} and {} more", between[..MOST_TOLD].join(", "), count - MOST_TOLD),
    }
}

/// `3 of 3, to 3.7.1`: by what the members run another one is due.
fn hop(intent: &Intent) -> String {
    let number = intent.hops.as_ref().and_then(|hops| hops.number(&intent.change)).unwrap_or_default();
    let to = intent.change.to().map_or_else(String::new, |to| format!(", to {to}"));
    format!("{number} of {}{to}", hops(intent).len())
}

fn accepted(intent: &Intent) -> String {
    match intent.accepted_hazards.is_empty() {
        true => "none".to_owned(),
        false => intent.accepted_hazards.iter().map(String::as_str).collect::<Vec<_>>().join(" "),
    }
}

fn gates(intent: &Intent) -> String {
    let gates = intent.hops.as_ref().map_or(&intent.gates, |hops| &hops.gates);
    match gates.is_empty() {
        true => "none".to_owned(),
        false => gates.iter().map(|(gate, is_on)| format!("{gate}={is_on}")).collect::<Vec<_>>().join(" "),
    }
}

fn backup(intent: &Intent) -> &'static str {
    if intent.backup { "asked for" } else { "not asked for" }
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
            Keys, RunState,
            change::{Change, Replace, Scale},
            rules::Rules,
        },
        plan::{Me, samples},
    };

    fn takes_turns(standing: &Intent, me: &Me) -> bool {
        let (rules, view) = (Rules::default(), samples::view("1+ 2+ 3*"));
        let run = crate::keys::Run { intent: standing.clone().into(), ..samples::run(RunState::Rolling) };
        let keys = Keys { run: Some(samples::at(run)), ..Keys::default() };
        let next = other_run(&samples::case(me, &rules, &keys, &view));
        let Some(Next::Refuse(Refusal::OtherRun { takes_turns, .. })) = next else { unreachable!("{next:?}") };
        takes_turns
    }

    /// Whatever hop of it stands, and whichever is due.
    #[test]
    fn a_way_differs_from_another_as_playbooks_do() {
        let [first, last] = samples::way();
        let one = samples::intent("=3.5.33", "3.6.14");
        let shown = |standing: &Intent, wanted: &Intent| {
            let differs = differences(standing, wanted);
            let shown = differs.iter().map(|one| format!("{}: {} / {}", one.part, one.standing, one.wanted));
            shown.collect::<Vec<_>>().join("; ")
        };
        assert_eq!(shown(&last, &first), "hop: 2 of 2, to 3.6.14 / 1 of 2, to 3.5.33");
        let expected = "from: >=3.4, <3.5 / =3.5.33; hops: 3.5.33 / none";
        assert_eq!(shown(&first, &one), expected);
        assert_eq!(shown(&last, &one), expected);
        assert_eq!(shown(&one, &samples::intent("=3.5.33", "3.6.15")), "to: 3.6.14 / 3.6.15");
    }

    #[test]
    fn a_run_waits_only_for_one_that_it_does_not_contradict() {
        let me = samples::me(&[1]);
        let upgrade = (*me.intent).clone();
        let of = |change| Intent { change, ..upgrade.clone() };
        let scale = of(Change::Scale(Scale { members: ["1", "2", "3"].map(Arc::from).to_vec() }));
        let replace = |member: &str, by: &str| of(Change::Replace(Replace { member: member.into(), by: by.into() }));
        let held = Intent { finalize: Finalize::Manual, ..upgrade.clone() };
        let accepting = Intent { accepted_hazards: ["floor-36".to_owned()].into(), ..upgrade.clone() };
        let [first, second] = [replace("1", "4"), replace("2", "5")];
        for (standing, wanted, expected) in [
            (&scale, &upgrade, true),
            (&upgrade, &scale, true),
            (&first, &upgrade, true),
            (&first, &second, true),
            (&first, &replace("1", "5"), false),
            (&first, &replace("4", "1"), false),
            (&first, &scale, false),
            (&scale, &first, false),
            (&held, &upgrade, false),
            (&accepting, &upgrade, false),
            (&upgrade, &held, false),
        ] {
            let wants = |verb| Me { verb, intent: Arc::new(wanted.clone()), ..me.clone() };
            assert_eq!(takes_turns(standing, &wants(Verb::Run)), expected, "{standing:?} {wanted:?}");
            // Whoever would end a run named the wrong one.
            for verb in [Verb::Rollback, Verb::Finalize, Verb::Resume] {
                assert!(!takes_turns(standing, &wants(verb)), "{verb:?} {standing:?}");
            }
        }
    }
}

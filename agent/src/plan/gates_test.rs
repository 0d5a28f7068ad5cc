//! Tables of the gates: three members' words, and what they come to.

use std::sync::Arc;

use super::*;
use crate::{
    keys::{Keys, rules::Rules},
    plan::{
        Finish, Me, Next, Verb, next,
        refusal::Refusal,
        samples::{self, intent, with_cluster_version, with_gates, with_release},
    },
};

const OFF_BY_2: [&str; 3] = ["decided -A | +A", "decided -A | -A", "decided -A | +A"];
const ALL_ON: [&str; 3] = ["decided +A | +A"; 3];
const ALL_OFF: [&str; 3] = ["decided -A | -A"; 3];

/// Three ready members at 3.5.30, cluster version 3.5, that say this of the gates.
fn view(said: [&str; 3]) -> ClusterView {
    view_of("1+ 2+ 3+", said)
}

fn view_of(members: &str, said: [&str; 3]) -> ClusterView {
    let mut view = samples::view(members);
    for (at, said) in said.iter().enumerate() {
        with_release(&mut view, at, "3.5.30");
        with_cluster_version(&mut view, at, "3.5");
        with_gates(&mut view, at, said);
    }
    view
}

fn expecting(gates: &str) -> BTreeMap<String, bool> {
    gates.split_whitespace().map(|word| (word[1..].to_owned(), word.starts_with('+'))).collect()
}

/// What is missing, in short, and whether it lasts.
fn in_short(missing: Option<&Missing>) -> String {
    let lasts = if missing.is_some_and(Missing::is_lasting) { ", for good" } else { "" };
    let ids = |members: &[MemberId]| members.iter().map(MemberId::to_string).collect::<Vec<_>>().join(",");
    let text = match missing {
        None => "settled".to_owned(),
        Some(Missing::NoGates { member }) => format!("{member} has none"),
        Some(Missing::GatesUnknown { member, .. }) => format!("{member} unknown"),
        Some(Missing::Undecided { awaited }) => format!("undecided by {}", ids(awaited)),
        Some(Missing::Differing { gate }) => format!("{gate} differs"),
        Some(Missing::NoSuchGate { gate, there_are }) => format!("no {gate} in {}", there_are.join(",")),
        Some(Missing::KeptOff { gate, by }) => format!("{gate} off by {}", ids(by)),
        Some(Missing::KeptOn { gate, .. }) => format!("{gate} on"),
        Some(other) => format!("{other:?}"),
    };
    text + lasts
}

#[test]
fn gates_are_settled_once_decided_equal_and_as_expected() {
    let decided_without_a = "decided | +B";
    for (said, expected, found) in [
        (ALL_ON, "", "settled"),
        (ALL_ON, "+A", "settled"),
        (ALL_OFF, "", "settled"),
        (ALL_OFF, "-A", "settled"),
        (OFF_BY_2, "", "settled"),
        (OFF_BY_2, "-A", "settled"),
        (OFF_BY_2, "+A", "A off by 2, for good"),
        (ALL_OFF, "+A", "A off by 1,2,3, for good"),
        (ALL_ON, "-A", "A on, for good"),
        (["decided +A | -A", "decided +A | +A", "decided +A | +A"], "-A", "A on"), // one has changed its mind
        (["decided -A | +A"; 3], "+A", "A off by "), // all want it: the decision is on its way
        (["decided -A +B | +A", "decided -A +B | +A +B", "decided -A +B | +A +B"], "+B", "settled"),
        (["decided -B +A | +A", "decided -B +A | +A +B", "decided -B +A | +A +B"], "+B", "B off by 1, for good"), // unnamed is off
        (ALL_ON, "+X", "no X in A, for good"),
        ([decided_without_a; 3], "+A", "no A in , for good"),
        // Not decided, by all or by what one of them wants now.
        (["open -A |"; 3], "", "undecided by 1,2,3"),
        (["open -A | +A", "open -A |", "open -A | +A"], "+A", "undecided by 2"),
        (["open -A | +A"; 3], "+A", "undecided by "),
        (["decided +A | +A", "decided +A | +A", "open -A | +A"], "", "undecided by "),
        (["decided +A | +A", "decided +A |", "decided +A | +A"], "+A", "undecided by 2"), // started anew
        (["decided |"; 3], "", "settled"),                                                // there is nothing to want
        (["decided +A | +A", "decided -A | +A", "decided +A | +A"], "", "A differs"),
        (["decided +A | +A", "decided | +A", "decided +A | +A"], "", "A differs"),
        // Members without gates.
        (["none"; 3], "", "settled"),
        (["none"; 3], "+A", "1 has none, for good"),
        (["none", "open |", "open |"], "", "settled"), // the cluster version has none either
        (["open |", "open |", "none"], "+A", "3 has none, for good"),
        (["?", "decided +A | +A", "decided +A | +A"], "", "1 unknown"),
        (["?"; 3], "+A", "1 unknown"),
    ] {
        assert_eq!(in_short(missing(&expecting(expected), &view(said)).as_ref()), found, "{said:?} {expected}");
    }
}

#[test]
fn learners_neither_decide_nor_keep_off() {
    for (said, expected, found) in [
        (["decided +A | +A", "decided +A | +A", "decided +A | -A"], "+A", "settled"),
        (["decided +A | +A", "decided +A | +A", "decided +A |"], "+A", "settled"),
        (["decided +A | +A", "decided +A | +A", "decided +A | -A"], "-A", "A on, for good"),
        (["decided +A | +A", "decided +A | +A", "decided -A | +A"], "", "A differs"), // and yet have the same gate
    ] {
        let view = view_of("1+ 2+ 3l", said);
        assert_eq!(in_short(missing(&expecting(expected), &view).as_ref()), found, "{said:?} {expected}");
    }
}

#[test]
fn versions_come_before_gates_and_the_way_back_expects_none() {
    let intent = crate::keys::Intent { gates: expecting("+A"), ..intent(">=3.4, <3.5", "3.5.30") };
    let settled = |view: &ClusterView, back| in_short(crate::plan::settled::missing(&intent, view, back).as_ref());
    let mut one_behind = view(OFF_BY_2);
    with_cluster_version(&mut one_behind, 2, "3.4");
    assert!(settled(&one_behind, false).starts_with("ClusterVersion"), "gates of another version say nothing");
    assert_eq!(settled(&view(OFF_BY_2), false), "A off by 2, for good");
    assert_eq!(settled(&view(OFF_BY_2), true), "settled");
    assert_eq!(settled(&view(["none"; 3]), true), "settled");
    assert_eq!(settled(&view(["open -A | +A"; 3]), true), "undecided by ", "equal and decided all the same");
}

fn decided(view: &ClusterView, expected: &str, verb: Verb) -> Next {
    let intent = crate::keys::Intent { gates: expecting(expected), ..intent(">=3.4, <3.5", "3.5.30") };
    let me = Me { intent: Arc::new(intent), verb, ..samples::me(&[1, 2, 3]) };
    let (me, rules, keys) = (&me, &Rules::default(), &Keys::default());
    next(&samples::case(me, rules, keys, view))
}

#[test]
fn a_target_without_gates_is_refused_as_soon_as_one_member_runs_it() {
    let at = |releases: [&str; 3], said| {
        let mut view = view(said);
        for (at, release) in releases.iter().enumerate() {
            with_release(&mut view, at, release);
            with_cluster_version(&mut view, at, "3.4");
        }
        view
    };
    let (old, new) = ("3.4.23", "3.5.30");
    for (view, expected, refused) in [
        (at([old, old, old], ["none"; 3]), "+A", None), // an old release can not tell
        (at([old, old, old], ["none"; 3]), "", None),
        (at([old, new, old], ["none", "open |", "none"]), "+A", None),
        (at([old, new, old], ["none", "?", "none"]), "+A", None),
        (at([old, new, old], ["none"; 3]), "+A", Some(2)),
        (at([old, new, old], ["none"; 3]), "", None),
        (at([new, new, new], ["none"; 3]), "+A", Some(1)),
    ] {
        let found = decided(&view, expected, Verb::Run);
        let expected = refused.map(|member| Next::Refuse(Refusal::GatesUnsupported { member: MemberId(member) }));
        match expected {
            Some(expected) => assert_eq!(found, expected, "{view:?}"),
            None => assert!(!matches!(found, Next::Refuse(_)), "{found:?} {view:?}"),
        }
    }
    let back = decided(&at([old, new, old], ["none"; 3]), "+A", Verb::Rollback);
    assert_eq!(back, Next::Refuse(Refusal::NothingToRollBack), "the way back asks for no gates");
}

#[test]
fn there_is_nothing_to_do_only_where_gates_are_as_expected() {
    for (said, expected, is_done) in [
        (ALL_ON, "+A", true),
        (OFF_BY_2, "", true),
        (OFF_BY_2, "-A", true),
        (OFF_BY_2, "+A", false),
        (["open -A |"; 3], "+A", false),
        (["open -A |"; 3], "", true), // nobody asked for it
    ] {
        let expected_next = if is_done { Next::Finish(Finish::NothingToDo) } else { Next::Begin };
        assert_eq!(decided(&view(said), expected, Verb::Run), expected_next, "{said:?} {expected}");
    }
}

//! A table of what members say, and why a feature is on or off by that.

use super::*;
use crate::plan::samples::{self, with_cluster_version, with_gates, with_known, with_release, with_stored};

fn ids(members: &[MemberId]) -> String {
    members.iter().map(MemberId::to_string).collect::<Vec<_>>().join(",")
}

/// Every feature in short: `A off, false on 2`.
fn in_short(view: &ClusterView) -> String {
    let Some(states) = feature_states(view) else { return "no gates".to_owned() };
    let one = |state: &FeatureState| {
        let is_on = state.is_on.map_or("differs", |on| if on { "on" } else { "off" });
        let why = match &state.why {
            Why::Wanted => "wanted".to_owned(),
            Why::Locked => "locked".to_owned(),
            Why::VersionTooLow { needed, below, silent } => {
                format!("needs {needed}, below {}, silent {}", ids(below), ids(silent))
            }
            Why::Undecided { waiting_for } => format!("waits for {}", ids(waiting_for)),
            Why::KeptOff { false_on, missing_from } => {
                format!("false on {}, missing from {}", ids(false_on), ids(missing_from))
            }
            Why::Changing => "changing".to_owned(),
            Why::Differing => "differing".to_owned(),
        };
        format!("{} {is_on}, {why}", state.name)
    };
    states.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Members that run 3.6.0 at cluster version 3.6. `stored` is what the first of them has of everybody's proposals.
fn view(members: &str, said: &[&str], stored: &[(u64, &str)], known: &str) -> ClusterView {
    let mut view = samples::view(members);
    for (at, said) in said.iter().enumerate() {
        with_release(&mut view, at, "3.6.0");
        with_cluster_version(&mut view, at, "3.6");
        with_gates(&mut view, at, said);
    }
    with_known(&mut view, 0, known);
    with_stored(&mut view, 0, stored);
    view
}

const A: &str = "A:3.6";

#[test]
fn a_feature_is_off_for_a_reason_that_names_members() {
    let (on, off, open) = ("decided +A | +A", "decided -A | +A", "open -A | +A");
    for (members, said, stored, known, expected) in [
        ("1+ 2+ 3+", [on, on, on], &[][..], A, "A on, wanted"),
        ("1+ 2+ 3+", [off, "decided -A | -A", off], &[], A, "A off, false on 2, missing from "),
        ("1+ 2+ 3+", [off, "decided -A | +B", "decided -A | -A"], &[], A, "A off, false on 3, missing from 2"),
        // A member that does not answer: what it proposed is known from others.
        ("1+ 2+ 3.", [off, off, "?"], &[(1, "+A"), (2, "+A"), (3, "-A")], A, "A off, false on 3, missing from "),
        ("1+ 2+ 3.", [off, off, "?"], &[(1, "+A"), (2, "+A"), (3, "+B")], A, "A off, false on , missing from 3"),
        ("1+ 2+ 3.", [on, on, "?"], &[(1, "+A"), (2, "+A"), (3, "+A")], A, "A on, wanted"),
        // One that was started again has not spoken, and its old wish counts.
        (
            "1+ 2+ 3+",
            [off, off, "decided -A |"],
            &[(1, "+A"), (2, "+A"), (3, "-A")],
            A,
            "A off, false on 3, missing from ",
        ),
        // Undecided.
        ("1+ 2+ 3.", [open, open, "?"], &[(1, "+A"), (2, "+A")], A, "A off, waits for 3"),
        ("1+ 2+ 3+", [open, "open -A |", "open -A |"], &[(1, "+A")], A, "A off, waits for 2,3"),
        ("1+ 2+ 3+", [open, open, open], &[(1, "+A"), (2, "+A"), (3, "+A")], A, "A off, waits for "),
        // A learner is not counted.
        ("1+ 2+ 3l", [on, on, "decided +A | -A"], &[], A, "A on, wanted"),
        ("1+ 2+ 3l", [open, open, "open -A |"], &[(1, "+A")], A, "A off, waits for "),
        // The version.
        ("1+ 2+ 3+", [on, on, on], &[], "A:3.6 B:3.7", "A on, wanted; B off, needs 3.7, below 1,2,3, silent "),
        ("1+ 2+ 3.", [on, on, "?"], &[], "A:3.6 B:3.7", "A on, wanted; B off, needs 3.7, below 1,2, silent 3"),
        // A lock counts whatever else is said.
        ("1+ 2+ 3+", [on, "decided +A | -A", on], &[], "A:3.6=on", "A on, locked"),
        ("1+ 2+ 3.", ["open +A | +A", "open +A | +A", "?"], &[], "A:3.6=on", "A on, locked"),
        ("1+ 2+ 3+", [off, off, off], &[], "A:3.6=off", "A off, locked"),
        // On the way.
        ("1+ 2+ 3+", [off, off, off], &[], A, "A off, changing"),
        ("1+ 2+ 3+", [on, "decided +A | -A", on], &[], A, "A on, changing"),
        ("1+ 2+ 3+", [on, off, on], &[], A, "A differs, differing"),
        // No gates.
        ("1+ 2+ 3+", ["none", "none", "none"], &[], "", "no gates"),
        ("1+ 2+ 3.", ["none", "?", "?"], &[], "", "no gates"),
    ] {
        assert_eq!(in_short(&view(members, &said, stored, known)), expected, "{members} {said:?} {stored:?} {known}");
    }
}

#[test]
fn a_mixed_cluster_says_which_release_keeps_its_version_down() {
    let mut view = view("1+ 2+ 3+", &["open |", "none", "open |"], &[], A);
    for at in 0..3 {
        with_cluster_version(&mut view, at, "3.5");
    }
    with_release(&mut view, 1, "3.5.0");
    assert_eq!(in_short(&view), "A off, needs 3.6, below 2, silent ");
}

#[test]
fn the_proposals_are_those_that_are_stored() {
    let stored = [(1, "+A"), (2, "-A"), (3, "+B"), (4, "+A")];
    let view = view("1+ 2+ 3. 4l", &["decided -A | +A", "decided -A | -A"], &stored, A);
    let proposed = &feature_states(&view).unwrap()[0].proposed;
    assert_eq!(*proposed, BTreeMap::from([(MemberId(1), true), (MemberId(2), false), (MemberId(4), true)]));
}

use std::time::Duration;

use lab::system::System;

use super::*;
use crate::{
    model::{Cell, Column, Path},
    plan::plan,
    report::{grid::grid, object},
    verdict::{Entry, Failure, MemberRow},
};

fn outcomes() -> Vec<Outcome> {
    let path = Path { from: "3.5.30".parse().unwrap(), to: "3.6.14".parse().unwrap() };
    let cell =
        |column, seed| Cell { system: System::Etcd, path: path.clone(), size: 3, tls: false, past: None, column, seed };
    let outcome = |column, seed, verdict, record| Outcome {
        plan: plan(&cell(column, seed)),
        verdict,
        record,
        again: if seed == 2 { vec!["agent run of m1: exit 1, step_failed in step 3".into()] } else { vec![] },
        took: Duration::from_millis(1_500),
    };
    let entry =
        |fault: &str, at_ms| Entry { fault: fault.into(), what: "m1 <dies>".into(), at_ms, note: "it & others".into() };
    let standing = |runs: &str| MemberRow {
        member: "m1".into(),
        binary: Some("3.6.14".into()),
        runs: Some(runs.into()),
        cluster_version: None,
    };
    let failed = plan(&cell(Column::Mixed, 1));
    let failure = Failure {
        step: 2,
        why: "2 were down \u{1b}[31m at once & \"more\"".into(),
        before: vec![standing("3.5.30")],
        after: vec![standing("3.6.14")],
        smallest: Some((failed.only(&["1", "2"].map(String::from).into()), "2 were down".into())),
        folder: "/tmp/logs".into(),
    };
    vec![
        outcome(Column::None, 1, Verdict::Passed, vec![]),
        outcome(Column::Mixed, 1, Verdict::Failed(Box::new(failure)), vec![entry("2.1", Some(12))]),
        outcome(Column::Mixed, 2, Verdict::NotInjected, vec![entry("3.1", None)]),
        outcome(Column::PowerCut, 2, Verdict::NotInjected, vec![entry("4.1", None)]),
        outcome(Column::AgentKilled, 1, Verdict::Passed, vec![entry("2.1", Some(7)), entry("3.1", None)]),
        Outcome::not_run(plan(&cell(Column::AgentLate, 1))),
    ]
}

#[test]
fn the_time_that_is_left_is_a_guess_by_what_was_done() {
    for (done, all, seconds, expected) in [
        (0, 9, 5, "0 of 9"),
        (1, 9, 10, "1 of 9, about 80 s left"),
        (8, 216, 480, "8 of 216, about 208 min left"),
        (9, 9, 90, "9 of 9"),
    ] {
        assert_eq!(words::progress(done, all, Duration::from_secs(seconds)), expected);
    }
}

#[test]
fn the_reports() {
    insta::assert_snapshot!("junit", junit("ci", "my matrix.yaml", &outcomes()));
    insta::assert_snapshot!("grid", grid("ci", "my matrix.yaml", &outcomes()));
    insta::assert_snapshot!("object", serde_json::to_string_pretty(&object::plans(&outcomes())).unwrap());
}

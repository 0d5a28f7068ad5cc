//! JUnit XML, as CI systems read it: a suite per path and size, a case per plan. A plan whose faults were not injected is
//! skipped there, since it shows nothing; so is one that was not run.

use std::{collections::BTreeMap, fmt::Write as _};

use super::words;
use crate::verdict::{Outcome, Verdict};

pub fn junit(name: &str, file: &str, outcomes: &[Outcome]) -> String {
    let mut suites: BTreeMap<String, Vec<&Outcome>> = BTreeMap::new();
    for outcome in outcomes {
        suites.entry(outcome.plan.cell.row()).or_default().push(outcome);
    }
    let all: Vec<_> = outcomes.iter().collect();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // To a String nothing fails.
    let _ = writeln!(text, "<testsuites name=\"{}\" {}>", escaped(name), counts(&all));
    for (suite, outcomes) in &suites {
        let _ = writeln!(text, "  <testsuite name=\"{}\" {}>", escaped(suite), counts(outcomes));
        outcomes.iter().for_each(|outcome| text += &case(suite, file, outcome));
        text += "  </testsuite>\n";
    }
    text + "</testsuites>\n"
}

fn counts(outcomes: &[&Outcome]) -> String {
    let count = |wanted: fn(&Verdict) -> bool| outcomes.iter().filter(|outcome| wanted(&outcome.verdict)).count();
    let seconds: f64 = outcomes.iter().map(|outcome| outcome.took.as_secs_f64()).sum();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{seconds:.3}\"",
        outcomes.len(),
        count(|verdict| matches!(verdict, Verdict::Failed(_))),
        count(|verdict| matches!(verdict, Verdict::NotInjected | Verdict::NotRun)),
    )
}

fn case(suite: &str, file: &str, outcome: &Outcome) -> String {
    let cell = &outcome.plan.cell;
    let name = format!("faults: {}, seed {}", cell.column.name(), cell.seed);
    let verdict = match &outcome.verdict {
        Verdict::Passed => String::new(),
        Verdict::NotInjected => "      <skipped message=\"no fault of the plan came to pass\"/>\n".into(),
        Verdict::NotRun => "      <skipped message=\"not run: a signal asked for an end\"/>\n".into(),
        Verdict::Failed(failure) => {
            let whole = words::failure(failure, &outcome.plan, file);
            format!("      <failure message=\"{}\">{}</failure>\n", escaped(&failure.why), escaped(&whole))
        }
    };
    let said = format!("{}{}", outcome.plan, words::record(outcome));
    format!(
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\">\n{verdict}      <system-out>{}</system-out>\n    </testcase>\n",
        escaped(suite),
        escaped(&name),
        outcome.took.as_secs_f64(),
        escaped(&said),
    )
}

/// Text as XML 1.0 allows it: markup is escaped, and what it has no place for is replaced.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
#[path = "report_test.rs"]
mod tests;

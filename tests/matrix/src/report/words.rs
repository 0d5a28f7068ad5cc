//! Sentences about one plan, for a terminal and for every report.

use std::{fmt::Write as _, time::Duration};

use crate::{
    plan::Plan,
    verdict::{Entry, Failure, MemberRow, Outcome, Verdict},
};

/// One line: verdict, plan, time.
pub fn line(outcome: &Outcome) -> String {
    let seconds = outcome.took.as_secs_f64();
    let faults = match outcome.record.len() {
        _ if !outcome.plan.cell.column.has_faults() => String::new(),
        0 => String::new(),
        all => format!(", {} of {all} faults injected", outcome.injected()),
    };
    format!("{:<13}{} ({seconds:.1} s{faults})", outcome.verdict.name(), outcome.plan.cell)
}

/// What was done to the cluster beside the steps, and what agents had to be run again for it, a line each.
pub fn record(outcome: &Outcome) -> String {
    let mut text = String::new();
    for Entry { fault, what, at_ms, note } in &outcome.record {
        // To a String nothing fails.
        let _ = match at_ms {
            Some(at) => writeln!(text, "{fault:<5}injected after {at} ms: {what}: {note}"),
            None => writeln!(text, "{fault:<5}not injected: {what}: {note}"),
        };
    }
    text.extend(outcome.again.iter().map(|agent| format!("     run again: {agent}\n")));
    text
}

/// All that a person asks for first.
pub fn failure(failure: &Failure, plan: &Plan, file: &str) -> String {
    let step = plan.steps.iter().find(|step| step.id == failure.step);
    let step = step
        .map_or_else(|| "before the first step".to_owned(), |step| format!("in step {} ({})", step.id, step.action));
    let mut text = format!("failed {step}: {}\n", failure.why);
    text += &standings("before", &failure.before);
    text += &standings("after", &failure.after);
    if let Some((smallest, why)) = &failure.smallest {
        text += &format!("the smallest plan that failed: {smallest}which failed: {why}\n");
        text += &format!("again: {}\n", again(smallest, plan, file));
    }
    text += &format!("logs:  {}\nagain: {}\n", failure.folder.display(), again(plan, plan, file));
    text
}

fn standings(when: &str, members: &[MemberRow]) -> String {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "no answer".to_owned());
    let line = |MemberRow { member, binary, runs, cluster_version }: &MemberRow| {
        let (binary, runs, version) = (known(binary), known(runs), known(cluster_version));
        format!("{when:<7}{member}: binary {binary}, runs {runs}, cluster version {version}\n")
    };
    members.iter().map(line).collect()
}

/// The command that runs a plan, or a part of it, again.
fn again(part: &Plan, whole: &Plan, file: &str) -> String {
    let cell = whole.cell.id();
    let keep = if part == whole { String::new() } else { format!(" --keep {}", part.parts().join(",")) };
    format!("agent matrix {} --only {cell}{keep}", agent::words::typed(file))
}

/// How far a matrix is, with a guess at the time that is left: what is left takes as long as what was done.
pub fn progress(done: usize, all: usize, elapsed: Duration) -> String {
    let left = elapsed.as_secs_f64() / done.max(1) as f64 * all.saturating_sub(done) as f64;
    match (done, left) {
        _ if done == all => format!("{done} of {all}"),
        (0, _) => format!("0 of {all}"),
        (_, left) if left < 90.0 => format!("{done} of {all}, about {left:.0} s left"),
        (_, left) => format!("{done} of {all}, about {:.0} min left", left / 60.0),
    }
}

/// How many of each verdict.
pub fn tally(outcomes: &[Outcome]) -> String {
    let count = |wanted: fn(&Verdict) -> bool| outcomes.iter().filter(|outcome| wanted(&outcome.verdict)).count();
    let text = format!(
        "{} passed, {} failed, {} not injected",
        count(|verdict| matches!(verdict, Verdict::Passed)),
        count(|verdict| matches!(verdict, Verdict::Failed(_))),
        count(|verdict| matches!(verdict, Verdict::NotInjected)),
    );
    match count(|verdict| matches!(verdict, Verdict::NotRun)) {
        0 => text,
        left => format!("{text}, {left} not run"),
    }
}

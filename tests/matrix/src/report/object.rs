//! The outcomes as JSON. Fields are added, never renamed.

use serde_json::{Value, json};

use crate::verdict::{Failure, Outcome, Verdict};

/// The list of plans that were run.
pub fn plans(outcomes: &[Outcome]) -> Value {
    outcomes.iter().map(plan).collect()
}

fn plan(outcome: &Outcome) -> Value {
    let cell = &outcome.plan.cell;
    let failure = match &outcome.verdict {
        Verdict::Failed(failure) => failed(failure),
        Verdict::Passed | Verdict::NotInjected | Verdict::NotRun => Value::Null,
    };
    json!({
        "id": cell.id(),
        "system": cell.system.name(),
        "from": cell.path.from.to_string(),
        "to": cell.path.to.to_string(),
        "members": cell.size,
        "tls": cell.tls,
        "past": cell.past.as_ref().map(|past| past.name.clone()),
        "faults": cell.column.name(),
        "seed": cell.seed,
        "verdict": outcome.verdict.name().replace(' ', "_"),
        "ms": outcome.took.as_millis() as u64,
        "plan": tree(&outcome.plan),
        "record": outcome.record,
        "again": outcome.again,
        "failure": failure,
    })
}

fn failed(failure: &Failure) -> Value {
    let smallest =
        failure.smallest.as_ref().map(|(plan, why)| json!({ "keep": plan.parts(), "plan": tree(plan), "why": why }));
    json!({
        "step": failure.step,
        "why": failure.why,
        "before": failure.before,
        "after": failure.after,
        "smallest": smallest,
        "logs": failure.folder.display().to_string(),
    })
}

fn tree(plan: &crate::plan::Plan) -> Vec<String> {
    plan.to_string().lines().map(ToOwned::to_owned).collect()
}

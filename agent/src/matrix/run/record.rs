//! What really came to pass of the faults of a plan: a fault that did not is told as such, never as passed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use crate::matrix::{
    plan::{Action, Fault, Plan, Step, tree},
    verdict::Entry,
};

/// When a fault came to pass, if it did, and what is to be said of it; by its name.
type Seen = BTreeMap<String, (Option<u64>, String)>;

/// A record that several faults write to at once.
#[derive(Clone, Debug)]
pub(super) struct Record {
    began: Instant,
    seen: Arc<Mutex<Seen>>,
}

impl Record {
    pub(super) fn new(began: Instant) -> Self {
        Self { began, seen: Arc::default() }
    }

    /// A fault came to pass now.
    pub(super) fn injected(&self, step: &Step, fault: &Fault, note: impl Into<String>) {
        self.note(fault.name(step), Ok(note.into()));
    }

    /// A fault did not come to pass.
    pub(super) fn missed(&self, step: &Step, fault: &Fault, why: impl Into<String>) {
        self.note(fault.name(step), Err(why.into()));
    }

    /// The agent that is to die in a step that is too late to go back did so now, or why it did not.
    pub(super) fn agent_died(&self, step: &Step, seen: Result<String, &str>) {
        self.note(step.id.to_string(), seen.map_err(ToOwned::to_owned));
    }

    fn note(&self, name: String, seen: Result<String, String>) {
        let seen = match seen {
            Ok(note) => (Some(self.began.elapsed().as_millis() as u64), note),
            Err(why) => (None, why),
        };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(name, seen);
    }

    /// Whether a fault came to pass.
    pub(super) fn has_injected(&self, step: &Step, fault: &Fault) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&fault.name(step)).is_some_and(|(at, _)| at.is_some())
    }

    /// Whether it is known what came of a fault.
    pub(super) fn is_told(&self, step: &Step, fault: &Fault) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&fault.name(step))
    }

    /// Whether any of the plan's faults came to pass.
    pub(super) fn has_injected_any(&self, plan: &Plan) -> bool {
        plan.steps.iter().any(|step| step.faults.iter().any(|fault| self.has_injected(step, fault)))
    }

    /// All that is to go wrong in the plan, with what came of it.
    pub(super) fn entries(&self, plan: &Plan) -> Vec<Entry> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = |name: String, what: String| {
            let nothing = || (None, "the plan did not come that far".to_owned());
            let (at_ms, note) = seen.get(&name).cloned().unwrap_or_else(nothing);
            Entry { fault: name, what, at_ms, note }
        };
        let of_step = |step: &Step| {
            let death = match step.action {
                Action::TooLate { last } => {
                    let what = format!("the agent of {} dies before the run is over", tree::member(last));
                    Some(entry(step.id.to_string(), what))
                }
                _ => None,
            };
            let faults = step.faults.iter().map(|fault| entry(fault.name(step), fault.trouble.to_string()));
            death.into_iter().chain(faults).collect::<Vec<_>>()
        };
        plan.steps.iter().flat_map(of_step).collect()
    }
}

//! What really came to pass of the faults of a plan: a fault that did not is told as such, never as passed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use crate::matrix::{
    plan::{Fault, Plan, Step},
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
        self.note(step, fault, Some(self.began.elapsed().as_millis() as u64), note.into());
    }

    /// A fault did not come to pass.
    pub(super) fn missed(&self, step: &Step, fault: &Fault, why: impl Into<String>) {
        self.note(step, fault, None, why.into());
    }

    fn note(&self, step: &Step, fault: &Fault, at: Option<u64>, note: String) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(fault.name(step), (at, note));
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

    /// Every fault of the plan, with what came of it.
    pub(super) fn entries(&self, plan: &Plan) -> Vec<Entry> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let of_step = |step: &Step| {
            let entry = |fault: &Fault| {
                let name = fault.name(step);
                let nothing = || (None, "the plan did not come that far".to_owned());
                let (at_ms, note) = seen.get(&name).cloned().unwrap_or_else(nothing);
                Entry { fault: name, what: fault.trouble.to_string(), at_ms, note }
            };
            step.faults.iter().map(entry).collect::<Vec<_>>()
        };
        plan.steps.iter().flat_map(of_step).collect()
    }
}

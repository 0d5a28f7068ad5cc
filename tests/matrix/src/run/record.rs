//! What really came to pass of the faults of a plan: a fault that did not is told as such, never as passed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use crate::{
    plan::{Action, Fault, Plan, Step, tree},
    verdict::Entry,
};

/// What came of each fault, and what is to be said of it; by its name.
type Seen = BTreeMap<String, (Came, String)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// It came to pass, so many milliseconds after the plan had begun.
    ToPass(u64),
    Perhaps,
    /// It did not come to pass.
    ToNothing,
}

/// A record that several faults write to at once.
#[derive(Clone, Debug)]
pub(super) struct Record {
    began: Instant,
    seen: Arc<Mutex<Seen>>,
    /// Agents that ended badly where something was wrong in their step, and whose command was run again.
    again: Arc<Mutex<Vec<String>>>,
}

impl Record {
    pub(super) fn new(began: Instant) -> Self {
        Self { began, seen: Arc::default(), again: Arc::default() }
    }

    /// A fault came to pass now.
    pub(super) fn injected(&self, step: &Step, fault: &Fault, note: impl Into<String>) {
        self.note(fault.name(step), self.now(), note.into());
    }

    /// A fault of which nobody can say whether it came to pass, and it does not count.
    pub(super) fn perhaps(&self, step: &Step, fault: &Fault, note: impl Into<String>) {
        self.note(fault.name(step), Came::Perhaps, note.into());
    }

    /// A fault did not come to pass.
    pub(super) fn missed(&self, step: &Step, fault: &Fault, why: impl Into<String>) {
        self.note(fault.name(step), Came::ToNothing, why.into());
    }

    /// The agent that is to die in a step that is too late to go back did so now, or why it did not.
    pub(super) fn agent_died(&self, step: &Step, seen: Result<String, &str>) {
        match seen {
            Ok(note) => self.note(step.id.to_string(), self.now(), note),
            Err(why) => self.note(step.id.to_string(), Came::ToNothing, why.to_owned()),
        }
    }

    /// An agent ended badly, and its command is run again.
    pub(super) fn again(&self, step: &Step, agent: &str) {
        let told = format!("{} in step {}", agent, step.id);
        self.again.lock().unwrap_or_else(PoisonError::into_inner).push(told);
    }

    /// The agents whose command was run again, in order.
    pub(super) fn all_again(&self) -> Vec<String> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn now(&self) -> Came {
        Came::ToPass(self.began.elapsed().as_millis() as u64)
    }

    fn note(&self, name: String, came: Came, note: String) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(name, (came, note));
    }

    fn came(&self, step: &Step, fault: &Fault) -> Option<Came> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&fault.name(step)).map(|(came, _)| *came)
    }

    /// Whether a fault may have come to pass.
    pub(super) fn may_have_injected(&self, step: &Step, fault: &Fault) -> bool {
        matches!(self.came(step, fault), Some(Came::ToPass(_) | Came::Perhaps))
    }

    /// Whether something was said of a fault.
    pub(super) fn is_told(&self, step: &Step, fault: &Fault) -> bool {
        self.came(step, fault).is_some()
    }

    /// Whether any of the plan's faults came to pass.
    pub(super) fn has_injected_any(&self, plan: &Plan) -> bool {
        let has_come = |step: &Step, fault: &Fault| matches!(self.came(step, fault), Some(Came::ToPass(_)));
        plan.steps.iter().any(|step| step.faults.iter().any(|fault| has_come(step, fault)))
    }

    /// All that is to go wrong in the plan, with what came of it.
    pub(super) fn entries(&self, plan: &Plan) -> Vec<Entry> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = |name: String, what: String| {
            let nothing = || (Came::ToNothing, "the plan did not come that far".to_owned());
            let (came, note) = seen.get(&name).cloned().unwrap_or_else(nothing);
            let at_ms = match came {
                Came::ToPass(at) => Some(at),
                Came::Perhaps | Came::ToNothing => None,
            };
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

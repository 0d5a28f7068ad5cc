//! Judges any plan, whoever made it: the steps lead somewhere, and every fault fits.

use std::collections::BTreeSet;

use super::{Action, Plan, Step, edit};

/// Why a plan makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// The first step, and no other, starts the cluster.
    #[error("a plan begins with the start of its cluster, once")]
    Start,
    /// A step has nothing to do, or something that cannot be done.
    #[error("step {0} has nothing to do where it stands")]
    Idle(usize),
    /// A fault does not fit into its step.
    #[error("fault {0} does not fit")]
    Misfit(String),
}

/// Judges a plan.
///
/// # Errors
/// The first thing that makes no sense.
pub fn sound(plan: &Plan) -> Result<(), Unsound> {
    let mut done = BTreeSet::new();
    for (index, step) in plan.steps.iter().enumerate() {
        if matches!(step.action, Action::Start { .. }) != (index == 0) {
            return Err(Unsound::Start);
        }
        let leads_on = match &step.action {
            Action::Start { leader } => *leader < plan.cell.size,
            Action::Rest { .. } => true,
            Action::Forward { hosts, .. } => {
                let is_new = hosts.iter().all(|host| *host < plan.cell.size && done.insert(*host));
                is_new && !hosts.is_empty()
            }
            Action::Back => {
                let is_on_the_way = !done.is_empty() && done.len() < plan.cell.size;
                done.clear();
                is_on_the_way
            }
            Action::TooLate { last } => {
                let is_last = *last < plan.cell.size && done.insert(*last) && done.len() == plan.cell.size;
                is_last && plan.cell.path.changes_minor()
            }
        };
        if !leads_on {
            return Err(Unsound::Idle(step.id));
        }
        fitting(step, plan.cell.size)?;
    }
    if plan.steps.is_empty() { Err(Unsound::Start) } else { Ok(()) }
}

fn fitting(step: &Step, size: usize) -> Result<(), Unsound> {
    let mut so_far = Step { faults: Vec::new(), ..step.clone() };
    for fault in &step.faults {
        if !edit::fits(&so_far, &fault.trouble, size) {
            return Err(Unsound::Misfit(fault.name(step)));
        }
        so_far.faults.push(fault.clone());
    }
    Ok(())
}

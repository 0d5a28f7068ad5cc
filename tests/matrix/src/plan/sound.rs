//! Judges any plan, whoever made it: the steps lead somewhere, and every fault fits.

use std::collections::BTreeSet;

use super::{Action, Host, Plan, Step, edit, hosts::Cast};

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

/// More members than any cluster should have (etcd's FAQ: seven).
pub const MOST: usize = 9;

/// Judges a plan.
///
/// # Errors
/// The first thing that makes no sense.
pub fn sound(plan: &Plan) -> Result<(), Unsound> {
    let mut done = BTreeSet::new();
    let mut ever: BTreeSet<Host> = (0..plan.cell.size).collect();
    for ((index, (members, step)), cast) in plan.with_members().enumerate().zip(plan.casts()) {
        if matches!(step.action, Action::Start { .. }) != (index == 0) {
            return Err(Unsound::Start);
        }
        let is_member = |host: &Host| members.contains(host);
        let leads_on = match &step.action {
            Action::Start { leader } => is_member(leader),
            Action::Rest { .. } => true,
            Action::Forward { hosts, .. } => {
                !hosts.is_empty() && hosts.iter().all(|host| is_member(host) && done.insert(*host))
            }
            Action::Back => {
                let is_on_the_way = !done.is_empty() && done.len() < members.len();
                done.clear();
                is_on_the_way
            }
            Action::TooLate { last } => {
                let is_last = is_member(last) && done.insert(*last) && done.len() == members.len();
                is_last && plan.cell.path.changes_minor()
            }
            Action::Scale { .. } | Action::Replace { .. } => {
                let is_of_one_release = done.is_empty() || done.len() == members.len();
                let after = step.action.after(&members);
                let fits = is_of_one_release && can_become(&step.action, &members, &ever);
                ever.extend(&after);
                if !done.is_empty() {
                    done = after.into_iter().collect();
                }
                fits
            }
        };
        if !leads_on {
            return Err(Unsound::Idle(step.id));
        }
        fitting(step, &cast)?;
    }
    if plan.steps.is_empty() { Err(Unsound::Start) } else { Ok(()) }
}

/// Whether agents take these members there: voters are odd in number, come or go, and two are there in any case.
fn can_become(action: &Action, members: &[Host], ever: &BTreeSet<Host>) -> bool {
    match action {
        Action::Scale { to } => {
            let new: Vec<_> = to.iter().filter(|host| !members.contains(host)).collect();
            let gone = members.iter().filter(|host| !to.contains(host)).count();
            let is_one_way = new.is_empty() != (gone == 0);
            let is_safe = gone == 0 || to.len() >= 3;
            is_one_way
                && is_safe
                && !to.len().is_multiple_of(2)
                && to.len() <= MOST
                && !new.into_iter().any(|host| ever.contains(host))
        }
        // With fewer there is no quorum without it.
        Action::Replace { member, by } => {
            members.contains(member) && members.len() >= 3 && (by == member || !ever.contains(by))
        }
        _ => false,
    }
}

fn fitting(step: &Step, cast: &Cast) -> Result<(), Unsound> {
    let mut so_far = Step { faults: Vec::new(), ..step.clone() };
    for fault in &step.faults {
        if !edit::fits(&so_far, &fault.trouble, cast) {
            return Err(Unsound::Misfit(fault.name(step)));
        }
        so_far.faults.push(fault.clone());
    }
    Ok(())
}

//! A plan that fails is made smaller as long as it fails, so that a person has the least to look at.
//!
//! What is left out is tried from large to small: all faults, a detour there and back, a step, a fault. Whether a smaller
//! plan fails is seen by running it; a fault that comes and goes is given a second chance to show itself.

use std::collections::BTreeSet;

use super::plan::{Action, Plan, sound::sound};

/// How many smaller plans are run at most.
pub const BUDGET: usize = 24;
/// How often one is run before it counts as sound.
const CHANCES: usize = 2;

/// The smallest plan that was seen to fail, and why it does, if it is smaller than the one that failed in this step, for
/// this reason; `fails` runs one, and says in which step it failed and why.
pub async fn shrink<F>(
    plan: &Plan,
    (failed_in, why): (usize, &str),
    mut fails: impl FnMut(Plan) -> F,
) -> Option<(Plan, String)>
where
    F: Future<Output = Option<(usize, String)>>,
{
    let mut smallest = up_to(plan, failed_in);
    let (mut why, mut runs) = (why.to_owned(), 0);
    'smaller: loop {
        for candidate in candidates(&smallest) {
            for _ in 0..CHANCES {
                if runs == BUDGET {
                    break 'smaller;
                }
                runs += 1;
                if let Some((step, said)) = fails(candidate.clone()).await {
                    smallest = up_to(&candidate, step);
                    why = said;
                    continue 'smaller;
                }
            }
        }
        break;
    }
    (smallest != *plan).then_some((smallest, why))
}

/// What comes after the failure has no part in it.
fn up_to(plan: &Plan, step: usize) -> Plan {
    let mut plan = plan.clone();
    plan.steps.retain(|other| other.id <= step.max(1));
    plan
}

/// Smaller plans that make sense, from the smallest on.
fn candidates(plan: &Plan) -> Vec<Plan> {
    let parts: BTreeSet<String> = plan.parts().into_iter().collect();
    let faults: Vec<_> = parts.iter().filter(|part| part.contains('.')).cloned().collect();
    let detours = plan.steps.iter().enumerate().filter(|(_, step)| step.action == Action::Back);
    let detours = detours.map(|(index, _)| plan.steps[1..=index].iter().map(|step| step.id.to_string()).collect());
    let steps = plan.steps.iter().map(|step| vec![step.id.to_string()]);
    let all_faults = if faults.len() > 1 { vec![faults.clone()] } else { Vec::new() };
    let one_fault = faults.into_iter().map(|fault| vec![fault]);
    let removals: Vec<Vec<String>> = all_faults.into_iter().chain(detours).chain(steps).chain(one_fault).collect();
    let without =
        |removed: &Vec<String>| plan.only(&parts.iter().filter(|part| !removed.contains(part)).cloned().collect());
    removals.iter().map(without).filter(|candidate| candidate != plan && sound(candidate).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use lab::system::System;

    use super::*;
    use crate::{
        model::{Cell, Column, Path},
        plan::{Trouble, plan},
    };

    fn mixed(seed: u64) -> Plan {
        let path = Path { from: "3.5.30".parse().unwrap(), to: "3.6.14".parse().unwrap() };
        plan(&Cell { system: System::Etcd, path, size: 5, tls: false, past: None, column: Column::Mixed, seed })
    }

    /// A system with a bug: it fails in the first step in which an agent is killed.
    fn bug(plan: &Plan) -> Option<(usize, String)> {
        let is_killed = |step: &&crate::plan::Step| {
            step.faults.iter().any(|fault| matches!(fault.trouble, Trouble::AgentKilled { .. }))
        };
        plan.steps.iter().find(is_killed).map(|step| (step.id, format!("step {}", step.id)))
    }

    #[tokio::test]
    async fn what_has_no_part_in_a_failure_is_left_out() {
        for seed in 0..50 {
            let whole = mixed(seed);
            let Some((step, _)) = bug(&whole) else { continue };
            let mut runs = 0;
            let found = shrink(&whole, (step, "it failed"), |smaller| {
                runs += 1;
                assert_eq!(sound(&smaller), Ok(()), "{smaller}");
                std::future::ready(bug(&smaller))
            });
            let found = found.await;
            assert!(runs <= BUDGET);
            let smallest = found.map_or_else(|| up_to(&whole, step), |(plan, _)| plan);
            assert!(bug(&smallest).is_some(), "{smallest}");
            if runs < BUDGET {
                let faults: usize = smallest.steps.iter().map(|step| step.faults.len()).sum();
                assert_eq!(faults, 1, "{smallest}");
            }
        }
    }

    #[tokio::test]
    async fn of_a_failure_that_does_not_come_again_only_what_came_later_is_left_out() {
        let whole = mixed(3);
        let found = shrink(&whole, (4, "it failed"), |_| std::future::ready(None)).await;
        assert_eq!(found, Some((up_to(&whole, 4), "it failed".into())));
        let last = whole.steps.len();
        assert_eq!(shrink(&whole, (last, "it failed"), |_| std::future::ready(None)).await, None);
    }
}

//! What goes wrong: edits of finished steps, each with how often it is made, and a check that it fits.
//!
//! No fault breaks quorum by itself, and no two that take something away overlap: what then failed would be nobody's
//! fault. A member is taken away only while no agent has begun, so that agents must see that it is not ready.

use std::time::Duration;

use lab::{chance::Chance, fault::Moment};

use super::{Action, Fault, Host, Pace, Plan, Step, Trouble};
use crate::model::Column;

/// How often a step gets a fault, of a hundred, where the column is of this fault alone.
const ALONE: u64 = 60;
/// The same where it is of all faults.
const AMONG_OTHERS: u64 = 25;
/// How many syncs of an agent's journal may be chosen from: a step has six, and a host one or two steps.
const SYNCS: u64 = 8;
/// How many events may be waited for until leadership is moved.
const EVENTS: u64 = 12;

/// The kinds of fault, in the order in which they are tried: first what fits into few steps.
const KINDS: [Column; 8] = [
    Column::PowerCut,
    Column::MemberRestarted,
    Column::MemberKilled,
    Column::MemberPaused,
    Column::LeaderMoved,
    Column::AgentKilled,
    Column::AgentLate,
    // The last, so that plans keep the others that their seeds gave them.
    Column::HostsGuarded,
];

/// Edits the plan as its cell wants. Where chance gave no fault at all, the first step that one fits gets it, so that a plan
/// is without only where it fits nowhere.
pub fn faults(plan: &mut Plan, chance: &mut Chance) {
    let column = plan.cell.column;
    let (kinds, often) = match column {
        Column::None => return,
        Column::Mixed => (KINDS.to_vec(), AMONG_OTHERS),
        one => (vec![one], ALONE),
    };
    let size = plan.cell.size;
    for kind in &kinds {
        for step in &mut plan.steps {
            for host in 0..if per_host(*kind) { size } else { 1 } {
                if chance.percent(often) {
                    add(step, *kind, host, size, chance);
                }
            }
        }
    }
    if plan.steps.iter().all(|step| step.faults.is_empty()) {
        let mut kinds = kinds;
        chance.shuffle(&mut kinds);
        let places = (0..plan.steps.len()).flat_map(|step| (0..size).map(move |host| (step, host)));
        let all = kinds.iter().flat_map(|kind| places.clone().map(move |place| (*kind, place)));
        for (kind, (step, host)) in all {
            if add(&mut plan.steps[step], kind, host, size, chance) {
                return;
            }
        }
    }
}

fn per_host(kind: Column) -> bool {
    matches!(kind, Column::AgentKilled | Column::AgentLate)
}

fn add(step: &mut Step, kind: Column, host: Host, size: usize, chance: &mut Chance) -> bool {
    let Some(trouble) = trouble(kind, host, size, chance) else { return false };
    let does_fit = fits(step, &trouble, size);
    if does_fit {
        step.faults.push(Fault { id: step.faults.len() + 1, trouble });
    }
    does_fit
}

fn trouble(kind: Column, host: Host, size: usize, chance: &mut Chance) -> Option<Trouble> {
    let member = chance.below(size as u64) as Host;
    let mut millis = |least: u64, most: u64| Duration::from_millis(least + chance.below(most - least));
    Some(match kind {
        Column::MemberKilled => Trouble::MemberKilled { member, back_after: millis(100, 2_000) },
        Column::MemberPaused => Trouble::MemberPaused { member, lasts: millis(100, 3_000) },
        Column::MemberRestarted => Trouble::MemberRestarted { member },
        Column::PowerCut => Trouble::PowerCut { member },
        Column::HostsGuarded => Trouble::HostsGuarded,
        Column::LeaderMoved => Trouble::LeaderMoved { to: member, after: chance.below(EVENTS) as usize },
        Column::AgentLate => Trouble::AgentLate { host, by: millis(50, 1_500) },
        Column::AgentKilled => {
            let moment = if chance.percent(50) { Moment::Before } else { Moment::After };
            Trouble::AgentKilled { host, sync: 1 + chance.below(SYNCS) as usize, moment }
        }
        Column::None | Column::Mixed => return None,
    })
}

/// Whether a step may get this fault too, in a cluster of this size.
pub fn fits(step: &Step, trouble: &Trouble, size: usize) -> bool {
    let others: Vec<&Trouble> = step.faults.iter().map(|fault| &fault.trouble).collect();
    let is_quiet = !others.iter().any(|other| takes_away(other) || matches!(other, Trouble::LeaderMoved { .. }));
    match (trouble, &step.action) {
        (_, Action::Start { .. } | Action::TooLate { .. }) => false,
        // With fewer there is no quorum without it.
        (Trouble::MemberKilled { .. } | Trouble::MemberPaused { .. }, _) => size >= 3 && is_quiet,
        (Trouble::MemberRestarted { .. } | Trouble::PowerCut { .. }, Action::Rest { .. }) => size >= 3 && is_quiet,
        // With fewer it would have to be allowed, and clients would see it.
        (Trouble::HostsGuarded, Action::Rest { .. }) => size >= 3 && is_quiet,
        (Trouble::MemberRestarted { .. } | Trouble::PowerCut { .. } | Trouble::HostsGuarded, _) => false,
        (Trouble::LeaderMoved { .. }, Action::Rest { .. }) => false,
        (Trouble::LeaderMoved { .. }, _) => size >= 2 && is_quiet,
        (Trouble::AgentKilled { host, .. }, Action::Forward { hosts, .. }) => {
            hosts.contains(host) && !others.iter().any(|other| is_of_agent(other, *host))
        }
        (Trouble::AgentKilled { host, .. }, Action::Back) => !others.iter().any(|other| is_of_agent(other, *host)),
        (Trouble::AgentLate { host, .. }, Action::Forward { hosts, pace: Pace::Together }) => {
            hosts.contains(host) && has_company(&others, *host, hosts.len())
        }
        (Trouble::AgentLate { host, .. }, Action::Back) => has_company(&others, *host, size),
        (Trouble::AgentKilled { .. } | Trouble::AgentLate { .. }, _) => false,
    }
}

/// Whether somebody of so many would still be in time.
fn has_company(others: &[&Trouble], late: Host, of: usize) -> bool {
    let already = others.iter().filter(|other| matches!(other, Trouble::AgentLate { .. })).count();
    already + 1 < of && !others.iter().any(|other| is_of_agent(other, late))
}

/// Whether a member is missing for a while.
fn takes_away(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::MemberKilled { .. }
        | Trouble::MemberPaused { .. }
        | Trouble::MemberRestarted { .. }
        | Trouble::HostsGuarded
        | Trouble::PowerCut { .. } => true,
        Trouble::AgentKilled { .. } | Trouble::AgentLate { .. } | Trouble::LeaderMoved { .. } => false,
    }
}

fn is_of_agent(trouble: &Trouble, of: Host) -> bool {
    matches!(trouble, Trouble::AgentKilled { host, .. } | Trouble::AgentLate { host, .. } if *host == of)
}

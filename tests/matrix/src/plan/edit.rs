//! What goes wrong: edits of finished steps, each with how often it is made, and a check that it fits.
//!
//! No fault breaks quorum by itself, and no two that take something away overlap: what then failed would be nobody's
//! fault. A member is taken away only while no agent has begun, so that agents must see that it is not ready.

use std::time::Duration;

use lab::{chance::Chance, fault::Moment};

use super::{Action, Fault, Host, Pace, Plan, Step, Trouble, hosts::Cast};
use crate::model::Column;

/// How often a step gets a fault, of a hundred, where the column is of this fault alone.
const ALONE: u64 = 60;
/// The same where it is of all faults.
const AMONG_OTHERS: u64 = 25;
/// How many syncs of an agent's journal may be chosen from: a step has six, and a host one or two steps.
const SYNCS: u64 = 8;
/// How many syncs of one thread of a member may be chosen from: under load it has some ten in a second.
const MEMBER_SYNCS: u64 = 30;
/// How many events may be waited for until leadership is moved.
const EVENTS: u64 = 12;

/// The kinds of fault, in the order in which they are tried: first what fits into few steps.
const KINDS: [Column; 14] = [
    Column::PowerCut,
    Column::MemberRestarted,
    Column::MemberKilled,
    Column::MemberPaused,
    Column::LeaderMoved,
    Column::AgentKilled,
    Column::AgentLate,
    // What came later is last, so that plans keep the others that their seeds gave them.
    Column::HostsGuarded,
    Column::MemberKilledAtSync,
    Column::DiskSlow,
    Column::MemberCutOff,
    Column::LinkSlow,
    Column::Maintenance,
    Column::AlarmRaised,
];

/// Edits the plan as its cell wants. Where chance gave no fault at all, the first step that one fits gets it, so that a plan
/// is without only where it fits nowhere.
pub fn faults(plan: &mut Plan, chance: &mut Chance) {
    let column = plan.cell.column;
    let (kinds, often) = match column {
        Column::None | Column::MembersChange => return,
        Column::Mixed => {
            let can_be = |kind: &Column| plan.cell.past.is_none() || !kind.is_of_links();
            (KINDS.into_iter().filter(can_be).collect(), AMONG_OTHERS)
        }
        one => (vec![one], ALONE),
    };
    let casts = plan.casts();
    for kind in &kinds {
        for (step, cast) in plan.steps.iter_mut().zip(&casts) {
            for host in cast.all.iter().take(if per_host(*kind) { cast.all.len() } else { 1 }) {
                if chance.percent(often) {
                    add(step, *kind, *host, cast, chance);
                }
            }
        }
    }
    if plan.steps.iter().all(|step| step.faults.is_empty()) {
        let mut kinds = kinds;
        chance.shuffle(&mut kinds);
        let of_step = |(step, cast): (usize, &Cast)| cast.all.iter().map(move |host| (step, *host)).collect::<Vec<_>>();
        let places = casts.iter().enumerate().flat_map(of_step).collect::<Vec<_>>();
        let places = places.into_iter();
        let all = kinds.iter().flat_map(|kind| places.clone().map(move |place| (*kind, place)));
        for (kind, (step, host)) in all {
            if add(&mut plan.steps[step], kind, host, &casts[step], chance) {
                return;
            }
        }
    }
}

fn per_host(kind: Column) -> bool {
    matches!(kind, Column::AgentKilled | Column::AgentLate)
}

fn add(step: &mut Step, kind: Column, host: Host, cast: &Cast, chance: &mut Chance) -> bool {
    let Some(trouble) = trouble(kind, step, host, cast, chance) else { return false };
    let does_fit = fits(step, &trouble, cast);
    if does_fit {
        step.faults.push(Fault { id: step.faults.len() + 1, trouble });
    }
    does_fit
}

fn trouble(kind: Column, step: &Step, host: Host, cast: &Cast, chance: &mut Chance) -> Option<Trouble> {
    let member = cast.all[chance.below(cast.all.len() as u64) as usize];
    let mut millis = |least: u64, most: u64| Duration::from_millis(least + chance.below(most - least));
    Some(match kind {
        Column::MemberKilled => Trouble::MemberKilled { member, back_after: millis(100, 2_000) },
        Column::MemberPaused => Trouble::MemberPaused { member, lasts: millis(100, 3_000) },
        Column::MemberRestarted => Trouble::MemberRestarted { member },
        Column::PowerCut => Trouble::PowerCut { member },
        Column::HostsGuarded => Trouble::HostsGuarded,
        Column::MemberKilledAtSync => {
            let back_after = millis(100, 2_000);
            Trouble::MemberKilledAtSync { member, sync: 1 + chance.below(MEMBER_SYNCS) as usize, back_after }
        }
        Column::DiskSlow => Trouble::DiskSlow { member, by: millis(10, 200), lasts: millis(500, 5_000) },
        Column::MemberCutOff => Trouble::MemberCutOff { member, lasts: millis(100, 4_000) },
        Column::LinkSlow => Trouble::LinkSlow { member, by: millis(5, 100), lasts: millis(500, 5_000) },
        Column::Maintenance => Trouble::Maintained { every: millis(50, 1_000) },
        Column::AlarmRaised => Trouble::AlarmRaised { of: member, lasts: millis(500, 5_000) },
        Column::LeaderMoved => Trouble::LeaderMoved { to: member, after: chance.below(EVENTS) as usize },
        Column::AgentLate => Trouble::AgentLate { host, by: millis(50, 1_500) },
        // Who comes and goes is in the cluster's keys, and in no journal.
        Column::AgentKilled if step.action.changes_members() => {
            Trouble::AgentCutShort { host, after: chance.below(EVENTS) as usize }
        }
        Column::AgentKilled => {
            let moment = if chance.percent(50) { Moment::Before } else { Moment::After };
            Trouble::AgentKilled { host, sync: 1 + chance.below(SYNCS) as usize, moment }
        }
        Column::None | Column::MembersChange | Column::Mixed => return None,
    })
}

/// Whether a step of these hosts may get this fault too.
pub fn fits(step: &Step, trouble: &Trouble, cast: &Cast) -> bool {
    let others: Vec<&Trouble> = step.faults.iter().map(|fault| &fault.trouble).collect();
    let is_loud = |other: &&Trouble| {
        takes_away(other) || matches!(other, Trouble::LeaderMoved { .. } | Trouble::AlarmRaised { .. })
    };
    let is_quiet = !others.iter().any(is_loud);
    let (stay, is_free) = (&cast.stay, |host: &Host| !others.iter().any(|other| is_of_agent(other, *host)));
    // With fewer there is no quorum without one.
    let has_spare = stay.len() >= 3 && is_quiet;
    match (trouble, &step.action) {
        (_, Action::Start { .. } | Action::TooLate { .. }) => false,
        // What is written anew in a defragmentation is not on disk at once, and no release says that it must be.
        (Trouble::Maintained { .. }, _) => {
            !others.iter().any(|other| matches!(other, Trouble::Maintained { .. } | Trouble::PowerCut { .. }))
        }
        // Its agents are to find it as they begin; where nobody answers it cannot be taken back.
        (Trouble::AlarmRaised { of, .. }, Action::Forward { .. } | Action::Back) => is_quiet && stay.contains(of),
        (Trouble::AlarmRaised { .. }, _) => false,
        (Trouble::AgentCutShort { host, .. }, action) => {
            action.changes_members() && cast.all.contains(host) && is_free(host)
        }
        (Trouble::AgentLate { host, .. }, Action::Scale { .. } | Action::Replace { .. }) => {
            cast.all.contains(host) && has_company(&others, *host, cast.all.len())
        }
        (Trouble::LeaderMoved { to, .. }, Action::Scale { .. } | Action::Replace { .. }) => {
            stay.contains(to) && stay.len() >= 2 && is_quiet
        }
        (_, Action::Scale { .. } | Action::Replace { .. }) => false,
        (
            Trouble::MemberKilled { member, .. }
            | Trouble::MemberPaused { member, .. }
            | Trouble::MemberKilledAtSync { member, .. }
            | Trouble::DiskSlow { member, .. },
            _,
        ) => has_spare && stay.contains(member),
        // The way to it is laid when the cluster is.
        (Trouble::MemberCutOff { member, .. } | Trouble::LinkSlow { member, .. }, _) => {
            has_spare && cast.steady.contains(member)
        }
        (Trouble::MemberRestarted { member }, Action::Rest { .. }) => has_spare && stay.contains(member),
        // Its data is on a file system of its own, which is there from the beginning.
        (Trouble::PowerCut { member }, Action::Rest { .. }) => has_spare && cast.steady.contains(member),
        // With fewer it would have to be allowed, and clients would see it.
        (Trouble::HostsGuarded, Action::Rest { .. }) => has_spare,
        (Trouble::MemberRestarted { .. } | Trouble::PowerCut { .. } | Trouble::HostsGuarded, _) => false,
        (Trouble::LeaderMoved { .. }, Action::Rest { .. }) => false,
        (Trouble::LeaderMoved { to, .. }, _) => stay.len() >= 2 && stay.contains(to) && is_quiet,
        (Trouble::AgentKilled { host, .. }, Action::Forward { hosts, .. }) => hosts.contains(host) && is_free(host),
        (Trouble::AgentKilled { host, .. }, Action::Back) => stay.contains(host) && is_free(host),
        (Trouble::AgentLate { host, .. }, Action::Forward { hosts, pace: Pace::Together }) => {
            hosts.contains(host) && has_company(&others, *host, hosts.len())
        }
        (Trouble::AgentLate { host, .. }, Action::Back) => has_company(&others, *host, stay.len()),
        (Trouble::AgentKilled { .. } | Trouble::AgentLate { .. }, _) => false,
    }
}

/// Whether somebody of so many would still be in time.
fn has_company(others: &[&Trouble], late: Host, of: usize) -> bool {
    let already = others.iter().filter(|other| matches!(other, Trouble::AgentLate { .. })).count();
    already + 1 < of && !others.iter().any(|other| is_of_agent(other, late))
}

/// Whether a member is missing for a while, or late.
fn takes_away(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::MemberKilled { .. }
        | Trouble::MemberPaused { .. }
        | Trouble::MemberRestarted { .. }
        | Trouble::HostsGuarded
        | Trouble::MemberKilledAtSync { .. }
        | Trouble::DiskSlow { .. }
        | Trouble::MemberCutOff { .. }
        | Trouble::LinkSlow { .. }
        | Trouble::PowerCut { .. } => true,
        Trouble::AgentKilled { .. }
        | Trouble::AgentCutShort { .. }
        | Trouble::AgentLate { .. }
        | Trouble::Maintained { .. }
        | Trouble::AlarmRaised { .. }
        | Trouble::LeaderMoved { .. } => false,
    }
}

fn is_of_agent(trouble: &Trouble, of: Host) -> bool {
    match trouble {
        Trouble::AgentKilled { host, .. } | Trouble::AgentCutShort { host, .. } | Trouble::AgentLate { host, .. } => {
            *host == of
        }
        _ => false,
    }
}

//! The steps of a plan, from chance: which members go in which order and in which groups, how long the cluster stays
//! mixed, and whether all goes back once on the way.

use std::time::Duration;

use lab::chance::Chance;

use super::{Action, Host, Pace, Step};
use crate::model::{Cell, Column};

/// So many plans in a hundred go back in the middle, as upgrades that fail do.
const GO_BACK: u64 = 80;
/// So many rest between two steps.
const REST: u64 = 50;
/// So many in a hundred are told to go back when the last member has just arrived.
const TOO_LATE: u64 = 40;
/// The longest rest, in milliseconds.
const LONGEST_REST: u64 = 600;

/// So many in a hundred have members come and go, where that is one of several things that happen.
const MEMBERS_CHANGE: u64 = 40;
/// So often they do where they can.
const ONCE_MORE: u64 = 60;

/// The steps, without anything that goes wrong.
pub fn steps(cell: &Cell, chance: &mut Chance) -> Vec<Step> {
    let mut cluster = Members { now: (0..cell.size).collect(), next: cell.size };
    let mut actions = vec![Action::Start { leader: chance.below(cell.size as u64) as Host }];
    let do_change = match cell.column {
        Column::MembersChange => true,
        Column::Mixed => chance.percent(MEMBERS_CHANGE),
        _ => false,
    };
    if do_change {
        actions.extend(cluster.change(chance));
    }
    let goes_on = |chance: &mut Chance| do_change && chance.percent(ONCE_MORE);
    let mut order = cluster.now.clone();
    chance.shuffle(&mut order);
    if order.len() > 1 && chance.percent(GO_BACK) {
        let count = 1 + chance.below(order.len() as u64 - 1) as usize;
        actions.extend(groups(&order[..count], chance));
        rest(&mut actions, chance);
        actions.push(Action::Back);
        rest(&mut actions, chance);
        // A downgrade that was begun is over before members come and go.
        if goes_on(chance) && !cell.path.is_down() {
            actions.extend(cluster.change(chance));
            order.clone_from(&cluster.now);
        }
        chance.shuffle(&mut order);
    }
    let too_late = if cell.path.changes_minor() && chance.percent(TOO_LATE) { order.pop() } else { None };
    for forward in groups(&order, chance) {
        actions.push(forward);
        rest(&mut actions, chance);
    }
    // Where something can be done to a cluster that is left alone.
    if !actions.iter().any(|action| matches!(action, Action::Rest { .. })) {
        let second = actions.len().min(2);
        actions.insert(second, Action::Rest { lasts: Duration::from_millis(chance.below(LONGEST_REST)) });
    }
    actions.extend(too_late.map(|last| Action::TooLate { last }));
    if goes_on(chance) {
        actions.extend(cluster.change(chance));
    }
    actions.into_iter().zip(1..).map(|(action, id)| Step { id, action, faults: Vec::new() }).collect()
}

/// Who is there, and the number of the next host.
struct Members {
    now: Vec<Host>,
    next: Host,
}

impl Members {
    /// Members come, go, or take each other's place; one that leaves is the oldest or the youngest.
    fn change(&mut self, chance: &mut Chance) -> Option<Action> {
        let count = self.now.len();
        let any = |chance: &mut Chance, of: usize| chance.below(of as u64) as usize;
        let member = self.now[any(chance, count)];
        let action = match chance.below(4) {
            0 if count >= 3 => Action::Replace { member, by: member },
            1 if count >= 3 => Action::Replace { member, by: self.fresh() },
            2 if count >= 5 => {
                Action::Scale { to: self.now[if chance.percent(50) { 2..count } else { 0..count - 2 }].to_vec() }
            }
            _ if count < 5 => {
                let more = if count.is_multiple_of(2) { 1 } else { 2 };
                let to = self.now.clone().into_iter().chain((0..more).map(|_| self.fresh())).collect();
                Action::Scale { to }
            }
            _ if count.is_multiple_of(2) => return None,
            _ => Action::Replace { member, by: member },
        };
        self.now = action.after(&self.now);
        Some(action)
    }

    fn fresh(&mut self) -> Host {
        self.next += 1;
        self.next - 1
    }
}

/// Takes the hosts forward, in this order and in up to three groups.
fn groups(order: &[Host], chance: &mut Chance) -> Vec<Action> {
    let mut rest = order;
    let mut groups = Vec::new();
    while !rest.is_empty() {
        let count = match groups.len() {
            2.. => rest.len(),
            _ => 1 + chance.below(rest.len() as u64) as usize,
        };
        let (group, others) = rest.split_at(count);
        let pace = if group.len() > 1 && chance.percent(70) { Pace::Together } else { Pace::InTurn };
        groups.push(Action::Forward { hosts: group.to_vec(), pace });
        rest = others;
    }
    groups
}

fn rest(actions: &mut Vec<Action>, chance: &mut Chance) {
    if chance.percent(REST) {
        actions.push(Action::Rest { lasts: Duration::from_millis(chance.below(LONGEST_REST)) });
    }
}

//! The steps of a plan, from chance: which members go in which order and in which groups, how long the cluster stays
//! mixed, and whether all goes back once on the way.

use std::time::Duration;

use lab::chance::Chance;

use super::{Action, Host, Pace, Step};
use crate::model::Cell;

/// So many plans in a hundred go back in the middle, as upgrades that fail do.
const GO_BACK: u64 = 80;
/// So many rest between two steps.
const REST: u64 = 50;
/// So many in a hundred are told to go back when the last member has just arrived.
const TOO_LATE: u64 = 40;
/// The longest rest, in milliseconds.
const LONGEST_REST: u64 = 600;

/// The steps, without anything that goes wrong.
pub fn steps(cell: &Cell, chance: &mut Chance) -> Vec<Step> {
    let mut actions = vec![Action::Start { leader: chance.below(cell.size as u64) as Host }];
    let mut order: Vec<Host> = (0..cell.size).collect();
    chance.shuffle(&mut order);
    if cell.size > 1 && chance.percent(GO_BACK) {
        let count = 1 + chance.below(cell.size as u64 - 1) as usize;
        actions.extend(groups(&order[..count], chance));
        rest(&mut actions, chance);
        actions.push(Action::Back);
        rest(&mut actions, chance);
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
    actions.into_iter().zip(1..).map(|(action, id)| Step { id, action, faults: Vec::new() }).collect()
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

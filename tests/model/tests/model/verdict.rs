//! What a search comes to: sound, or a mutant that was found. Each counts its states, and says how many all have visited.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Instant,
};

use super::{
    BOUND,
    judge::Violation,
    scenario::Scenario,
    search::{Found, explore},
    trace,
};

static SCENARIOS: AtomicUsize = AtomicUsize::new(0);
static STATES: AtomicUsize = AtomicUsize::new(0);

/// Adds to what all searches of this process have visited, and says how much that is.
fn sum_with(states: usize) -> String {
    let scenarios = SCENARIOS.fetch_add(1, Relaxed) + 1;
    let all = STATES.fetch_add(states, Relaxed) + states;
    format!("together {all} in {scenarios} searches")
}

/// Explores a scenario in which nothing may go wrong.
pub fn must_be_sound(scenario: Scenario) {
    must_all_be_sound([scenario]);
}

/// Explores them all, whatever the first ones come to.
pub fn must_all_be_sound(scenarios: impl IntoIterator<Item = Scenario>) {
    let faults: Vec<String> = scenarios.into_iter().filter_map(|scenario| fault_of(&scenario)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

fn fault_of(scenario: &Scenario) -> Option<String> {
    let begun = Instant::now();
    let name = &scenario.name;
    match explore(scenario, BOUND) {
        Found::Sound { states, ends } => {
            println!("counted: {name}: {states} states, {ends} ends, {:.1?}; {}", begun.elapsed(), sum_with(states));
            None
        }
        Found::Broken { what, states, moves } => {
            Some(format!("{name}: {what}, after {states} states:\n  {}", trace::replay(scenario, &moves)))
        }
        Found::CutOff { states } => Some(format!("{name}: cut off after {states} states, no verdict")),
    }
}

/// Explores a scenario in which this rule is off: that must show as this violation.
pub fn must_be_found(name: &str, scenario: &Scenario, shows_as: Violation) {
    match explore(scenario, BOUND) {
        Found::Broken { what, states, moves } => {
            assert_eq!(what, shows_as, "without `{name}`:\n  {}", trace::replay(scenario, &moves));
            let (moves, sum) = (moves.len(), sum_with(states));
            println!("counted: without `{name}`: {what}, after {states} states and {moves} moves; {sum}");
        }
        Found::Sound { states, .. } => panic!("without `{name}` nothing went wrong in {states} states"),
        Found::CutOff { states } => panic!("without `{name}` cut off after {states} states"),
    }
}

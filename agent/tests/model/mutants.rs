//! The protocol with one rule turned off: each must show, as the violation that the rule is there for.

use agent::rollout::rules::Rules;

use super::{
    BOUND,
    faults::Faults,
    judge::{OTHER_SICK, STRANDED, STUCK, TWO_DOWN, UNDER_MARK, Violation},
    scenario::Scenario,
    search::{Found, explore},
    sum_with, trace,
};

/// A rule turned off, and the faults under which that must show.
fn mutant(name: &str, turn_off: fn(&mut Rules), faults: fn(&mut Faults), shows_as: Violation) {
    let scenario = Scenario::new(name, faults).with(turn_off);
    match explore(&scenario, BOUND) {
        Found::Broken { what, states, moves } => {
            assert_eq!(what, shows_as, "without `{name}`:\n  {}", trace::replay(&scenario, &moves));
            let moves = moves.len();
            println!(
                "counted: without `{name}`: {what}, after {states} states and {moves} moves; {}",
                sum_with(states)
            );
        }
        Found::Sound { states, .. } => panic!("without `{name}` nothing went wrong in {states} states"),
        Found::CutOff { states } => panic!("without `{name}` cut off after {states} states"),
    }
}

macro_rules! without {
    ($($rule:ident, $faults:expr, $shows_as:expr;)*) => {
        $(#[test]
        fn $rule() {
            mutant(stringify!($rule), |rules| rules.$rule = false, $faults, $shows_as);
        })*
    };
}

without! {
    record_is_the_lock, |f| f.freeze = 1, TWO_DOWN;
    abandon_leaves_a_sign, |f| (f.freeze, f.abandon) = (1, 1), TWO_DOWN;
    unknown_is_asked_again, |f| f.unknown = 1, STUCK;
    owner_lifts_the_mark, |f| f.sick = 1, UNDER_MARK;
    no_return_is_the_start, |f| f.sick = 1, STRANDED;
    baton_is_dropped_to_wait, |_| (), STUCK;
    check_asks_everything, |f| f.crash = 1, OTHER_SICK;
    mark_is_one_write, |f| (f.sick, f.freeze) = (1, 1), UNDER_MARK;
    mending_respects_the_start, |f| f.kill = 1, STRANDED;
    rollback_compares, |f| (f.sick, f.rollback) = (1, 1), UNDER_MARK;
}

//! The protocol with one rule turned off: each must show, as the violation that the rule is there for.

use super::{
    held::{KEPT, MARKED, NOT_HELD},
    judge::{FORGOT, LOST_JOIN, LOST_STEP, NOT_IN_SYNC, NOT_REPLACED, STRANGER, Violation},
    must_be_found,
    scenario::Scenario,
};
use agent::keys::rules::Rules;

/// A rule turned off, and a scenario in which that must show.
fn mutant(name: &str, scenario: Scenario, turn_off: fn(&mut Rules), shows_as: Violation) {
    let scenario = scenario.with(turn_off);
    must_be_found(name, &scenario, shows_as);
}

macro_rules! without {
    ($($rule:ident, $scenario:expr, $shows_as:expr;)*) => {
        $(#[test]
        fn $rule() {
            let scenario: fn(&str) -> Scenario = $scenario;
            mutant(stringify!($rule), scenario(stringify!($rule)), |rules| rules.$rule = false, $shows_as);
        })*
    };
}

/// One more of each that is named.
macro_rules! under {
    ($scenario:expr, $($fault:ident),*) => { $scenario.under(|f| { $(f.$fault += 1;)* }) };
}

without! {
    learner_is_ready, |name| under!(Scenario::scale(name, 2, 3), crash), NOT_IN_SYNC;
    replacement_votes_first, |name| Scenario::replace(name, 3), NOT_REPLACED;
    lost_data_burns_the_id, |name| under!(Scenario::scale(name, 2, 3).frail(&[2]), vanish), FORGOT;
    newcomer_begins_once, |name| under!(Scenario::scale(name, 2, 3).frail(&[2]), vanish), FORGOT;
    given_up_is_said_first, |name| under!(Scenario::scale(name, 2, 3), sick), STRANGER;
    members_compare_the_run, |name| Scenario::scale(name, 1, 3), LOST_JOIN;
    call_is_said_first, |name| under!(Scenario::replace(name, 3).on(&[0, 2, 3]), crash), NOT_REPLACED;
    step_outlives_its_call, |name| under!(Scenario::scale(name, 2, 3), call), LOST_STEP;
    hold_comes_first, |name| Scenario::scale(name, 1, 2).held(), NOT_HELD;
    mark_stops_a_promotion, |name| under!(Scenario::scale(name, 1, 2).held(), mark), MARKED;
    hold_stops_a_removal, |name| under!(Scenario::scale(name, 3, 2).held(), hold), KEPT;
    call_compares_the_host, |name| under!(Scenario::scale(name, 1, 2).held(), mark), MARKED;
    turn_writes_the_run, |name| under!(Scenario::scale(name, 2, 3).on(&[0, 2]), crash, freeze), STRANGER;
}

//! The protocol with one rule turned off: each must show, as the violation that the rule is there for.

use super::{
    faults::Faults,
    judge::{
        ENABLED_FOR_NOTHING, NO_BACKUP, NOT_ASKED, OTHER_SICK, PAST_THE_LAST, STRANDED, STUCK, TWO_DOWN, UNDER_MARK,
        UNFIT, Violation,
    },
    must_be_found,
    scenario::{Kind, Scenario},
};
use agent::keys::rules::Rules;

/// A rule turned off, and the faults under which that must show.
fn mutant(name: &str, kind: Kind, turn_off: fn(&mut Rules), faults: fn(&mut Faults), shows_as: Violation) {
    let scenario = Scenario::new(name, faults).of(kind).with(turn_off);
    must_be_found(name, &scenario, shows_as);
}

macro_rules! without {
    ($kind:expr, $($(#[$mark:meta])* $rule:ident, $faults:expr, $shows_as:expr;)*) => {
        $(#[test]
        $(#[$mark])*
        fn $rule() {
            mutant(stringify!($rule), $kind, |rules| rules.$rule = false, $faults, $shows_as);
        })*
    };
}

without! { Kind::Minor,
    record_is_the_lock, |f| f.freeze = 1, TWO_DOWN;
    abandon_leaves_a_sign, |f| (f.freeze, f.abandon) = (1, 1), TWO_DOWN;
    unknown_is_asked_again, |f| f.unknown = 1, STUCK;
    owner_lifts_the_mark, |f| f.sick = 1, UNDER_MARK;
    no_return_is_the_start, |f| f.sick = 1, STRANDED;
    baton_is_dropped_to_wait, |_| (), STUCK;
    check_asks_everything, |f| f.crash = 1, OTHER_SICK;
    put_back_looks_first, |f| (f.sick, f.crash) = (1, 1), OTHER_SICK;
    mark_is_one_write, |f| (f.sick, f.freeze) = (1, 1), UNDER_MARK;
    repair_respects_the_start, |f| f.kill = 1, STRANDED;
    rollback_compares, |f| (f.sick, f.rollback) = (1, 1), UNDER_MARK;
}

without! { Kind::Down,
    downgrade_takes_the_baton, |f| f.rollback = 1, ENABLED_FOR_NOTHING;
    data_is_fit_to_go, |_| (), UNFIT;
    back_is_cancelled, |f| f.rollback = 1, STUCK;
    back_waits_for_the_baton, |f| f.rollback = 1, ENABLED_FOR_NOTHING;
    #[ignore = "slow: two minutes of a processor"]
    back_needs_an_old_voter, |f| f.rollback = 1, PAST_THE_LAST;
}

without! { Kind::TwoMinors,
    hop_gives_the_baton_back, |f| f.move_leader = 1, STUCK;
}

/// Members would be taken down before anything was saved.
#[test]
fn backup_comes_first() {
    let scenario =
        Scenario::new("backup_comes_first", |_| ()).backing_up().with(|rules| rules.backup_comes_first = false);
    must_be_found("backup_comes_first", &scenario, NO_BACKUP);
}

/// Whoever says that the last member of one hop may go, or turns one hop back, would say the same of the next.
#[test]
fn verb_is_of_its_hop() {
    let two_minors = |name, faults: fn(&mut Faults)| Scenario::new(name, faults).of(Kind::TwoMinors).on(&[0, 0, 1]);
    for scenario in [two_minors("finalize", |_| ()).held(), two_minors("rollback", |f| f.rollback = 1)] {
        let name = format!("verb_is_of_its_hop ({})", scenario.name);
        must_be_found(&name, &scenario.with(|rules| rules.verb_is_of_its_hop = false), NOT_ASKED);
    }
}

/// A twin takes the other's record for its own, and its baton.
#[test]
fn twins_are_refused() {
    let scenario = Scenario::new("twins_are_refused", |_| ()).twins().with(|rules| rules.twins_are_refused = false);
    must_be_found("twins_are_refused", &scenario, TWO_DOWN);
}

/// A member that was told to stop and goes on for a while is taken for healthy, and the next one goes.
#[test]
fn what_was_told_to_stop_is_remembered() {
    for (name, scenario) in [
        ("stop that fails", Scenario::new("told_and_stuck", |f| (f.stuck, f.resume) = (1, 1))),
        ("agent that is killed", Scenario::new("told_and_kill", |f| f.kill = 1)),
    ] {
        must_be_found(&format!("memory of what was told ({name})"), &scenario.forgetful(), TWO_DOWN);
    }
}

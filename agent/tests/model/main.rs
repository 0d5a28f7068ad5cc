//! The model checker: the shipped rollout machine on three hosts, in every order, with faults.

#![allow(missing_docs)]

mod faults;
mod moves;
mod scenario;
mod search;
mod world;

use agent::rollout::rules::Rules;
use faults::Faults;
use scenario::Scenario;
use search::{Found, explore};

const BOUND: usize = 6_000_000;

fn sound(scenario: Scenario) {
    let begun = std::time::Instant::now();
    match explore(&scenario, BOUND) {
        Found::Sound { states, ends } => {
            println!("{}: {states} states, {ends} ends, {:.1?}", scenario.name, begun.elapsed());
        }
        Found::Broken { what, states, trace } => {
            panic!("{}: {what}, after {states} states:\n  {}", scenario.name, trace.join("\n  "))
        }
        Found::CutOff { states } => panic!("{}: cut off after {states} states, no verdict", scenario.name),
    }
}

fn one(name: &str, change: impl FnOnce(&mut Faults)) -> Scenario {
    let mut faults = Faults::default();
    change(&mut faults);
    Scenario::new(name, faults)
}

macro_rules! singles {
    ($($name:ident: $change:expr;)*) => {
        $(#[test]
        fn $name() {
            sound(one(stringify!($name), $change));
        })*
    };
}

singles! {
    nothing: |_| ();
    split_looks: |f| f.split_looks = true;
    kill: |f| f.kill = 1;
    lose_directory: |f| f.lose_directory = 1;
    crash: |f| f.crash = 1;
    freeze: |f| f.freeze = 1;
    unknown: |f| f.unknown = 1;
    sick: |f| f.sick = 1;
    move_leader: |f| f.move_leader = 1;
    interrupt: |f| f.interrupt = 1;
    abandon: |f| f.abandon = 1;
    rollback: |f| f.rollback = 1;
    replace: |f| f.replace = 1;
    hook: |f| f.hook = 1;
}

#[test]
fn held() {
    sound(one("held", |_| ()).held());
}

singles! {
    freeze_and_abandon: |f| (f.freeze, f.abandon) = (1, 1);
    kill_and_crash: |f| (f.kill, f.crash) = (1, 1);
    kill_and_sick: |f| (f.kill, f.sick) = (1, 1);
    unknown_and_kill: |f| (f.unknown, f.kill) = (1, 1);
    sick_and_rollback: |f| (f.sick, f.rollback) = (1, 1);
}

/// A rule turned off, and the faults under which that must show.
fn mutant(name: &str, turn_off: impl FnOnce(&mut Rules), faults: impl FnOnce(&mut Faults), shows_as: &str) {
    match explore(&one(name, faults).with(turn_off), BOUND) {
        Found::Broken { what, states, trace } => {
            assert_eq!(what, shows_as, "{name}, after {states} states:\n  {}", trace.join("\n  "));
            println!("without `{name}`: {what}, after {states} states and {} moves", trace.len());
        }
        Found::Sound { states, .. } => panic!("without `{name}` nothing went wrong in {states} states"),
        Found::CutOff { states } => panic!("without `{name}` cut off after {states} states"),
    }
}

const STUCK: &str = "from here nobody can reach the end";
const UNDER_MARK: &str = "taken down under a failure mark";

macro_rules! mutants {
    ($($rule:ident, $faults:expr, $shows_as:expr;)*) => {
        mod without {
            use super::*;
            $(#[test]
            fn $rule() {
                mutant(stringify!($rule), |rules| rules.$rule = false, $faults, $shows_as);
            })*
        }
    };
}

mutants! {
    record_is_the_lock, |f| f.freeze = 1, "two members down by our hand";
    abandon_leaves_a_sign, |f| (f.freeze, f.abandon) = (1, 1), "two members down by our hand";
    unknown_is_asked_again, |f| f.unknown = 1, STUCK;
    owner_lifts_the_mark, |f| f.sick = 1, UNDER_MARK;
    no_return_is_the_start, |f| f.sick = 1, "the version rose with an old binary in place";
    baton_is_dropped_to_wait, |_| (), STUCK;
    check_asks_everything, |f| f.crash = 1, "taken down though another was seen not ready";
    mark_is_one_write, |f| f.sick = 1, UNDER_MARK;
    mending_respects_the_start, |f| f.kill = 1, "the version rose with an old binary in place";
    rollback_compares, |f| (f.sick, f.rollback) = (1, 1), UNDER_MARK;
}

//! The model checker: the shipped rollout machine on three hosts, in every order, with faults.

#![allow(missing_docs)]

mod faults;
mod moves;
mod scenario;
mod search;
mod world;

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

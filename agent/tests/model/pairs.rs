//! Pairs of faults: those that once showed something by default, all of them when asked.

use super::{
    scenario::{Kind, Scenario},
    sound,
};

sound! {
    freeze_and_abandon: |name| Scenario::new(name, |f| (f.freeze, f.abandon) = (1, 1));
    kill_and_crash: |name| Scenario::new(name, |f| (f.kill, f.crash) = (1, 1));
    kill_and_sick: |name| Scenario::new(name, |f| (f.kill, f.sick) = (1, 1));
    unknown_and_kill: |name| Scenario::new(name, |f| (f.unknown, f.kill) = (1, 1));
    sick_and_rollback: |name| Scenario::new(name, |f| (f.sick, f.rollback) = (1, 1));
}

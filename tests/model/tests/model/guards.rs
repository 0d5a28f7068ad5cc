//! Guarded commands: alone, with faults, at once on several hosts, and beside a run; and their rules turned off.
//!
//! Not searched: a state directory that is lost while a command runs. Nothing says then that one does.

use super::{
    errand::{BELOW, GONE_WITHOUT_LOCK},
    faults::{ALL, Fault, Faults},
    judge::{OTHER_SICK, Violation},
    must_all_be_sound, must_be_found,
    scenario::{Kind, Scenario},
    sound,
};
use agent::keys::rules::Rules;

/// Guarded commands alone, on three hosts.
pub fn guards(name: &str, count: u8, faults: fn(&mut Faults)) -> Scenario {
    let faults = |f: &mut Faults| {
        f.guard = count;
        faults(f);
    };
    Scenario::new(name, faults).of(Kind::Patch).without_run()
}

/// A guarded command on one host while the others, or all, are upgraded.
fn beside(name: &str, faults: fn(&mut Faults)) -> Scenario {
    let faults = |f: &mut Faults| {
        f.guard = 1;
        faults(f);
    };
    Scenario::new(name, faults).of(Kind::Patch)
}

/// The faults that can befall a guard.
fn befalling() -> impl Iterator<Item = Fault> {
    const POWER: Fault = ("power", |f| f.power += 1);
    let is_of_runs = |name: &str| ["lose_directory", "rollback", "resume", "replace", "stuck"].contains(&name);
    ALL.into_iter().filter(move |(name, _)| !is_of_runs(name)).chain([POWER])
}

sound! {
    one: |name| guards(name, 1, |_| ());
    two_at_once: |name| guards(name, 2, |_| ());
    three_at_once: |name| guards(name, 3, |_| ());
    three_at_once_and_kill: |name| guards(name, 3, |f| f.kill = 1);
    #[ignore = "slow: 200,000 states; two guards have the same fault by default"]
    three_at_once_and_power: |name| guards(name, 3, |f| f.power = 1);
    kill_and_power: |name| guards(name, 2, |f| (f.kill, f.power) = (1, 1));
    kill_and_abandon: |name| guards(name, 2, |f| (f.kill, f.abandon) = (1, 1));
    kill_and_give_up: |name| guards(name, 2, |f| (f.kill, f.give_up) = (1, 1));
    freeze_and_abandon: |name| guards(name, 2, |f| (f.freeze, f.abandon) = (1, 1));
    only_asked: |name| guards(name, 1, |f| (f.ask, f.kill) = (1, 1));
    rebooting_and_kill: |name| guards(name, 2, |f| f.kill = 1).rebooting();
    rebooting_and_power: |name| guards(name, 2, |f| f.power = 1).rebooting();
    two_hosts_of_two: |name| guards(name, 2, |_| ()).on(&[0, 0, 1, 1, 2]);
    three_of_five_on_one_host: |name| guards(name, 2, |_| ()).on(&[0, 0, 0, 1, 2]);
    all_on_one_host: |name| guards(name, 1, |_| ()).on(&[0, 0, 0]);
    one_voter: |name| guards(name, 2, |f| (f.kill, f.power) = (1, 1)).on(&[0]);
    two_voters_crash_and_power: |name| guards(name, 2, |f| (f.crash, f.power) = (1, 1)).on(&[0, 1]);
    beside_a_run: |name| beside(name, |_| ());
    beside_a_run_and_kill_of_two_voters: |name| beside(name, |f| f.kill = 1).on(&[0, 1]);
    beside_a_run_and_power_of_two_voters: |name| beside(name, |f| f.power = 1).on(&[0, 1]);
    beside_a_run_and_power_with_two_on_one_host: |name| beside(name, |f| f.power = 1).on(&[0, 0, 1]);
    beside_a_run_over_a_minor_and_sick: |name| beside(name, |f| f.sick = 1).of(Kind::Minor).on(&[0, 1]);
}

/// Two guards and each fault alone: on three hosts, with two members on one, and with two voters.
#[test]
fn two_and_each_fault() {
    must_all_be_sound(befalling().flat_map(|(name, fault)| {
        let two = move |owners: &[usize]| guards(&format!("two and {name} on {owners:?}"), 2, fault).on(owners);
        [two(&[0, 1, 2]), two(&[0, 0, 1]), two(&[0, 1])]
    }));
}

#[test]
#[ignore = "slow: all pairs of faults with two guards"]
fn two_and_all_pairs_of_faults() {
    let faults: Vec<Fault> = befalling().collect();
    let pairs = (0..faults.len()).flat_map(|one| (one..faults.len()).map(move |other| (one, other)));
    must_all_be_sound(pairs.map(|(one, other)| {
        let ((first, one), (second, other)) = (faults[one], faults[other]);
        let both = move |f: &mut Faults| {
            f.guard = 2;
            one(f);
            other(f);
        };
        Scenario::new(format!("two guards, {first} and {second}"), both).of(Kind::Patch).without_run()
    }));
}

/// Each fault alone while one host has a guard and all are upgraded.
fn beside_with(kind: Kind, from: usize) -> impl Iterator<Item = Scenario> {
    let all = ALL.into_iter().filter(|(name, _)| *name != "lose_directory");
    let chosen = all.chain([("power", (|f| f.power += 1) as fn(&mut Faults))]).skip(from).step_by(2);
    chosen.map(move |(name, fault)| beside(&format!("guard beside {kind:?}, {name}"), fault).of(kind))
}

#[test]
#[ignore = "slow: a guard beside a run, each fault alone"]
fn beside_a_run_with_each_fault() {
    must_all_be_sound(beside_with(Kind::Patch, 0));
}

#[test]
#[ignore = "slow: a guard beside a run, each fault alone"]
fn beside_a_run_with_each_other_fault() {
    must_all_be_sound(beside_with(Kind::Patch, 1));
}

#[test]
#[ignore = "slow: a guard beside a run over a minor, each fault alone"]
fn beside_a_run_over_a_minor_with_each_fault() {
    must_all_be_sound(beside_with(Kind::Minor, 0).chain(beside_with(Kind::Minor, 1)));
}

/// A rule turned off, and where that must show.
fn mutant(scenario: Scenario, turn_off: fn(&mut Rules), shows_as: Violation) {
    let scenario = scenario.with(turn_off);
    must_be_found(&scenario.name, &scenario, shows_as);
}

macro_rules! without {
    ($($rule:ident, $count:expr, $faults:expr, $owners:expr, $shows_as:expr;)*) => {
        mod without {
            use super::*;
            $(#[test]
            fn $rule() {
                let scenario = guards(stringify!($rule), $count, $faults).on(&$owners);
                mutant(scenario, |rules| rules.$rule = false, $shows_as);
            })*
        }
    };
}

without! {
    guard_awaits_the_host, 1, |_| (), [0, 1, 2], GONE_WITHOUT_LOCK;
    guard_counts_the_host, 1, |_| (), [0, 0, 1], BELOW;
    guard_notes_the_command, 1, |f| f.kill = 1, [0, 1, 2], GONE_WITHOUT_LOCK;
    record_is_the_lock, 2, |f| f.kill = 1, [0, 1, 2], GONE_WITHOUT_LOCK;
    abandon_leaves_a_sign, 1, |f| f.abandon = 1, [0, 1, 2], GONE_WITHOUT_LOCK;
    check_asks_everything, 1, |f| f.crash = 1, [0, 1, 2], OTHER_SICK;
}

#[test]
fn three_of_five_members_on_one_host_count_as_lost() {
    let scenario = guards("guard_counts_the_host, three of five", 1, |_| ()).on(&[0, 0, 0, 1, 2]);
    mutant(scenario, |rules| rules.guard_counts_the_host = false, BELOW);
}

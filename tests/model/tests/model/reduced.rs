//! The search as it is made held against one that takes every order for itself (`reduction.rs`): both must
//! come by the very same worlds.

use std::collections::{HashSet, VecDeque};

use super::{
    faults,
    guards::guards,
    scenario::{Kind, Scenario},
    world::World,
};
use agent::keys::RunState;

/// What comes after the end of the run is cut short wherever everybody has gone home.
fn is_compared(world: &World) -> bool {
    let is_done = world.keys.run.as_ref().is_some_and(|run| matches!(run.value.state, RunState::Done { .. }));
    !is_done && !world.is_over() && (0..world.hosts.len()).all(|host| !world.is_private(host))
}

/// Every world in which no host is about to do what only it can see, and how many there are in all.
fn explore(scenario: &Scenario) -> (HashSet<u64>, usize) {
    let (mut met, mut found) = (HashSet::new(), HashSet::new());
    let mut frontier = VecDeque::from([World::new(scenario)]);
    while let Some(world) = frontier.pop_front() {
        if is_compared(&world) {
            found.insert(world.digest());
        }
        for what in world.moves() {
            let next = world.make(what).unwrap_or_else(|violation| panic!("{}: {violation}", scenario.name));
            if met.insert(next.digest()) {
                frontier.push_back(next);
            }
        }
    }
    (found, met.len())
}

fn compare(reduced: Scenario) {
    let reduced = reduced.fine().each_for_itself();
    let (name, owners) = (&reduced.name, &reduced.owners);
    let (whole, all) = explore(&reduced.clone().unreduced());
    let (part, some) = explore(&reduced);
    let (missing, extra) = (whole.difference(&part).count(), part.difference(&whole).count());
    println!("counted: {name} on {owners:?}: {some} for {all} states, {} of them at rest", whole.len());
    assert_eq!((missing, extra), (0, 0), "{name} on {owners:?}: worlds missing, and made up");
}

/// Each fault alone.
fn compare_all(owners: &[usize]) {
    faults::ALL.into_iter().for_each(|(name, fault)| compare(Scenario::new(name, fault).on(owners)));
}

#[test]
fn two_hosts_come_by_the_same_worlds() {
    compare_all(&[0, 1]);
}

#[test]
#[ignore = "slow: a minute and a half of a processor; two hosts are searched by default"]
fn two_members_on_one_host_come_by_the_same_worlds() {
    compare_all(&[0, 0, 1]);
}

/// Guarded commands, and all that may happen before the last of them is over: what happens then is cut short. A host that
/// may go at any moment does nothing that only it can see.
fn compare_guards(faults: &[faults::Fault]) {
    faults.iter().for_each(|(name, fault)| compare(guards(&format!("{name}, guarded"), 2, *fault).on(&[0, 1])));
}

#[test]
fn guards_come_by_the_same_worlds() {
    compare_guards(&[("nothing", |_| ()), ("kill", |f| f.kill = 1), ("power", |f| f.power = 1)]);
}

#[test]
#[ignore = "slow: guards with each other fault, in every order"]
fn guards_come_by_the_same_worlds_with_each_fault() {
    compare_guards(&[
        ("freeze", |f| f.freeze = 1),
        ("unknown", |f| f.unknown = 1),
        ("give_up", |f| f.give_up = 1),
        ("interrupt", |f| f.interrupt = 1),
        ("abandon", |f| f.abandon = 1),
        ("refuse", |f| f.refuse = 1),
    ]);
}

/// A way of two hops. What comes between the end of one run and the begin of the next is cut short.
fn compare_hops(faults: impl IntoIterator<Item = faults::Fault>) {
    for (name, fault) in faults {
        compare(Scenario::new(format!("{name}, two hops"), fault).of(Kind::PatchThenMinor).on(&[0, 1]));
    }
}

#[test]
fn hops_come_by_the_same_worlds() {
    let nothing: faults::Fault = ("nothing", |_| ());
    compare_hops([nothing]);
}

#[test]
#[ignore = "slow: two hops with each fault, in every order"]
fn hops_come_by_the_same_worlds_with_each_fault() {
    compare_hops(faults::ALL);
}

/// Two agents go by one id.
fn compare_twins(faults: impl IntoIterator<Item = faults::Fault>) {
    for (name, fault) in faults {
        compare(Scenario::new(format!("{name}, twins"), fault).on(&[0, 1]).twins());
    }
}

/// After a kill a twin sees whether an agent of its id has ended.
#[test]
#[ignore = "slow: a minute of a processor; two hosts are searched by default"]
fn twins_come_by_the_same_worlds() {
    compare_twins(faults::ALL.into_iter().filter(|(name, _)| ["kill", "freeze"].contains(name)));
}

#[test]
#[ignore = "slow: each fault alone, with twins, in every order"]
fn twins_come_by_the_same_worlds_with_each_fault() {
    compare_twins(faults::ALL);
}

#[test]
#[ignore = "slow: a million states, every order and every host for itself"]
fn three_hosts_come_by_the_same_worlds() {
    compare(Scenario::new("nothing", |_| ()));
    compare(Scenario::new("sick", |f| f.sick = 1));
}

//! Changes that lead down a minor: each fault alone, and those pairs in which the cluster's own part matters.

use super::{
    faults::{ALL, Fault},
    must_all_be_sound,
    scenario::{Kind, Scenario},
    sound,
};

sound! {
    nothing: |name| Scenario::new(name, |_| ()).of(Kind::Down);
    #[ignore = "slow: two to five minutes of a processor; the way up has the same fault by default"]
    kill: |name| Scenario::new(name, |f| f.kill = 1).of(Kind::Down);
    #[ignore = "slow: 300,000 states; the way up has the same fault by default"]
    lose_directory: |name| Scenario::new(name, |f| f.lose_directory = 1).of(Kind::Down);
    #[ignore = "slow: 300,000 states; the way up has the same fault by default"]
    crash: |name| Scenario::new(name, |f| f.crash = 1).of(Kind::Down);
    #[ignore = "slow: two to five minutes of a processor; the way up has the same fault by default"]
    freeze: |name| Scenario::new(name, |f| f.freeze = 1).of(Kind::Down);
    #[ignore = "slow: more than a minute of a processor; the way up has the same fault by default"]
    unknown: |name| Scenario::new(name, |f| f.unknown = 1).of(Kind::Down);
    #[ignore = "slow: 300,000 states; the way up has the same fault by default"]
    give_up: |name| Scenario::new(name, |f| f.give_up = 1).of(Kind::Down);
    sick: |name| Scenario::new(name, |f| f.sick = 1).of(Kind::Down);
    move_leader: |name| Scenario::new(name, |f| f.move_leader = 1).of(Kind::Down);
    #[ignore = "slow: two to five minutes of a processor; the way up has the same fault by default"]
    interrupt: |name| Scenario::new(name, |f| f.interrupt = 1).of(Kind::Down);
    #[ignore = "slow: more than a minute of a processor; the way up has the same fault by default"]
    abandon: |name| Scenario::new(name, |f| f.abandon = 1).of(Kind::Down);
    #[ignore = "slow: two to five minutes of a processor; the way up has the same fault by default"]
    rollback: |name| Scenario::new(name, |f| f.rollback = 1).of(Kind::Down);
    #[ignore = "slow: more than a minute of a processor; the way up has the same fault by default"]
    replace: |name| Scenario::new(name, |f| f.replace = 1).of(Kind::Down);
    refuse: |name| Scenario::new(name, |f| f.refuse = 1).of(Kind::Down);
    stuck: |name| Scenario::new(name, |f| f.stuck = 1).of(Kind::Down);
    held: |name| Scenario::new(name, |_| ()).of(Kind::Down).held();
}

/// A run that may turn back, and one fault more.
fn turning_back(owners: &[usize], fault: Fault) -> Scenario {
    let (name, more) = fault;
    let scenario = Scenario::new(format!("down, rollback and {name}, on {owners:?}"), |f| {
        f.rollback += 1;
        more(f);
    });
    scenario.of(Kind::Down).on(owners)
}

fn all_but_rollback() -> impl Iterator<Item = Fault> {
    ALL.into_iter().filter(|(name, _)| *name != "rollback")
}

#[test]
#[ignore = "slow: each fault on the way back, with two members on one host"]
fn each_fault_on_the_way_back_with_two_members_on_one_host() {
    must_all_be_sound(all_but_rollback().map(|fault| turning_back(&[0, 0, 1], fault)));
}

#[test]
#[ignore = "slow: each fault on the way back, of a million states each and more"]
fn each_fault_on_the_way_back() {
    must_all_be_sound(all_but_rollback().map(|fault| turning_back(&[0, 1, 2], fault)));
}

//! Pairs of faults: those that once showed something by default, all of them when asked.

use super::{
    faults::ALL,
    must_all_be_sound, must_be_sound,
    scenario::{Kind, Scenario},
    sound,
};

sound! {
    freeze_and_abandon: |name| Scenario::new(name, |f| (f.freeze, f.abandon) = (1, 1));
    #[ignore = "slow: 400,000 to 1,900,000 states; each fault of it is searched alone by default"]
    kill_and_crash: |name| Scenario::new(name, |f| (f.kill, f.crash) = (1, 1));
    #[ignore = "slow: three minutes of a processor; two voters have the same pair by default"]
    kill_and_sick: |name| Scenario::new(name, |f| (f.kill, f.sick) = (1, 1));
    sick_and_rollback: |name| Scenario::new(name, |f| (f.sick, f.rollback) = (1, 1));
    #[ignore = "slow: 180,000 states; each fault of it is searched alone by default"]
    freeze_and_sick: |name| Scenario::new(name, |f| (f.freeze, f.sick) = (1, 1));
    #[ignore = "slow: 400,000 to 1,900,000 states; each fault of it is searched alone by default"]
    lose_directory_and_abandon: |name| Scenario::new(name, |f| (f.lose_directory, f.abandon) = (1, 1));
    #[ignore = "slow: 400,000 to 1,900,000 states; each fault of it is searched alone by default"]
    unknown_and_freeze: |name| Scenario::new(name, |f| (f.unknown, f.freeze) = (1, 1));
    #[ignore = "slow: more than a minute of a processor; each fault of it is searched alone by default"]
    held_and_kill: |name| Scenario::new(name, |f| f.kill = 1).held();
    held_and_sick: |name| Scenario::new(name, |f| f.sick = 1).held();
    #[ignore = "slow: 170,000 to 300,000 states; each fault of it is searched alone by default, and held_and_sick as a pair"]
    held_and_freeze: |name| Scenario::new(name, |f| f.freeze = 1).held();
    #[ignore = "slow: 170,000 to 300,000 states; each fault of it is searched alone by default, and held_and_sick as a pair"]
    held_and_replace: |name| Scenario::new(name, |f| f.replace = 1).held();
    #[ignore = "slow: 170,000 to 300,000 states; each fault of it is searched alone by default, and held_and_sick as a pair"]
    held_and_rollback: |name| Scenario::new(name, |f| f.rollback = 1).held();
    two_members_on_one_host_kill_and_crash: |name| Scenario::new(name, |f| (f.kill, f.crash) = (1, 1)).on(&[0, 0, 1]);
    two_members_on_one_host_kill_and_sick: |name| Scenario::new(name, |f| (f.kill, f.sick) = (1, 1)).on(&[0, 0, 1]);
    one_voter_kill_and_sick: |name| Scenario::new(name, |f| (f.kill, f.sick) = (1, 1)).on(&[0]);
    two_voters_kill_and_sick: |name| Scenario::new(name, |f| (f.kill, f.sick) = (1, 1)).on(&[0, 1]);
    #[ignore = "slow: 700,000 to 900,000 states; each fault of it is searched alone by default, and kill_and_sick on two voters"]
    restart_of_no_file_kill_and_sick: |name| Scenario::new(name, |f| (f.kill, f.sick) = (1, 1)).of(Kind::Restart).starting_again();
    #[ignore = "slow: 700,000 to 900,000 states; each fault of it is searched alone by default, and kill_and_sick on two voters"]
    restart_kill_and_sick: |name| Scenario::new(name, |f| (f.kill, f.sick) = (1, 1)).of(Kind::Restart);
    #[ignore = "slow: 400,000 to 1,900,000 states; each fault of it is searched alone by default"]
    patch_sick_and_rollback: |name| Scenario::new(name, |f| (f.sick, f.rollback) = (1, 1)).of(Kind::Patch);
    stopping_on_failure: |name| Scenario::new(name, |f| (f.sick, f.resume) = (1, 1)).stopping_on_failure();
    sick_and_resume: |name| Scenario::new(name, |f| (f.sick, f.resume) = (1, 1));
    stuck_and_resume: |name| Scenario::new(name, |f| (f.stuck, f.resume) = (1, 1));
    #[ignore = "slow: 700,000 to 900,000 states; each fault of it is searched alone by default, and kill_and_sick on two voters"]
    stuck_and_kill: |name| Scenario::new(name, |f| (f.stuck, f.kill) = (1, 1));
}

/// Every fault together with each of those that come after it in the list.
macro_rules! all_with {
    ($($fault:ident)*) => {
        $(#[test]
        #[ignore = "slow: all pairs of faults"]
        fn $fault() {
            super::all_pairs_of(stringify!($fault));
        })*
    };
}

fn all_pairs_of(first: &str) {
    let from = ALL.iter().position(|(name, _)| *name == first).expect("a fault");
    let one = ALL[from].1;
    must_all_be_sound(ALL[from + 1..].iter().map(|(second, other)| {
        Scenario::new(format!("{first} and {second}"), |f| {
            one(f);
            other(f);
        })
    }));
}

/// Searches of a few million states each, one fault's after the other's, so that no two of them are held at once
/// but those of as many tests as run side by side.
mod all {
    all_with! {
        kill lose_directory crash freeze unknown give_up sick move_leader interrupt abandon rollback resume replace
        refuse
    }
}

#[test]
#[ignore = "slow: two million states; two hosts are searched by default"]
fn split_looks_on_three_hosts() {
    must_be_sound(Scenario::new("split looks on three hosts", |f| f.split_looks = true));
}

/// Each fault alone where registering and ending take time, and no host stands for another.
#[test]
#[ignore = "slow: each fault alone, finer than by default"]
fn each_fault_alone_in_fine() {
    must_all_be_sound(ALL.map(|(name, fault)| Scenario::new(format!("{name}, fine"), fault).fine()));
}

#[test]
#[ignore = "slow: each fault alone, with every host for itself"]
fn each_fault_alone_with_every_host_for_itself() {
    must_all_be_sound(
        ALL.map(|(name, fault)| Scenario::new(format!("{name}, each for itself"), fault).each_for_itself()),
    );
}

/// Two of three agents go by one id.
#[test]
#[ignore = "slow: each fault alone, with twins"]
fn each_fault_alone_with_twins() {
    must_all_be_sound(ALL.map(|(name, fault)| Scenario::new(format!("{name}, twins"), fault).twins()));
}

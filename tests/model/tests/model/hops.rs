//! Ways of two hops: each fault alone, the holds of both, and what is typed while one hop ends and the next begins.
//!
//! Not searched: ways down, and ways of three hops. With one or two voters a crash or a way back has no fair end in any search over a
//! minor, so three members are searched, two of them on one host where that is small enough.

use super::{
    faults::{ALL, Faults},
    must_all_be_sound,
    scenario::{Kind, Scenario},
    sound,
};

const THREE_HOSTS: &[usize] = &[0, 1, 2];
const TWO_HOSTS: &[usize] = &[0, 0, 1];

/// Within a minor, then over one.
fn patch_then_minor(name: &str, faults: fn(&mut Faults)) -> Scenario {
    Scenario::new(name, faults).of(Kind::PatchThenMinor)
}

/// Over two minors: both hops have a point of no return.
fn two_minors(name: &str, faults: fn(&mut Faults)) -> Scenario {
    Scenario::new(name, faults).of(Kind::TwoMinors)
}

sound! {
    nothing: |name| patch_then_minor(name, |_| ());
    nothing_over_two_minors: |name| two_minors(name, |_| ());
    sick_over_two_minors: |name| two_minors(name, |f| f.sick = 1).on(TWO_HOSTS);
    rollback_over_two_minors: |name| two_minors(name, |f| f.rollback = 1).on(TWO_HOSTS);
    held: |name| two_minors(name, |_| ()).held().on(TWO_HOSTS);
    held_and_rollback: |name| two_minors(name, |f| f.rollback = 1).held().on(TWO_HOSTS);
    split_looks: |name| patch_then_minor(name, |f| f.split_looks = true).on(&[0, 1]);
    sick_and_rollback: |name| two_minors(name, |f| (f.sick, f.rollback) = (1, 1)).on(TWO_HOSTS);
    #[ignore = "slow: 600,000 states; each fault of it is searched alone by default"]
    kill_and_sick: |name| two_minors(name, |f| (f.kill, f.sick) = (1, 1)).on(TWO_HOSTS);
    #[ignore = "slow: 1,800,000 states; each fault of it is searched alone by default"]
    kill_and_crash: |name| two_minors(name, |f| (f.kill, f.crash) = (1, 1)).on(TWO_HOSTS);
    #[ignore = "slow: 160,000 states; each fault of it is searched alone by default"]
    freeze_and_abandon: |name| two_minors(name, |f| (f.freeze, f.abandon) = (1, 1)).on(TWO_HOSTS);
    #[ignore = "slow: 400,000 states; each fault of it is searched alone by default"]
    unknown_and_freeze: |name| two_minors(name, |f| (f.unknown, f.freeze) = (1, 1)).on(TWO_HOSTS);
    #[ignore = "slow: 500,000 states; each fault of it is searched alone by default"]
    lose_directory_and_abandon: |name| two_minors(name, |f| (f.lose_directory, f.abandon) = (1, 1)).on(TWO_HOSTS);
    #[ignore = "slow: 150,000 states; two hosts are searched by default"]
    held_on_three_hosts: |name| two_minors(name, |_| ()).held();
    #[ignore = "slow: 100,000 states; the coarser search is made by default"]
    nothing_in_fine: |name| patch_then_minor(name, |_| ()).fine();
}

fn each(kind: Kind, owners: &[usize]) {
    must_all_be_sound(ALL.map(|(name, fault)| Scenario::new(format!("{name}, {kind:?}"), fault).of(kind).on(owners)));
}

#[test]
fn each_fault_alone() {
    each(Kind::PatchThenMinor, TWO_HOSTS);
}

#[test]
#[ignore = "slow: each fault alone, over two minors"]
fn each_fault_alone_over_two_minors() {
    each(Kind::TwoMinors, TWO_HOSTS);
}

#[test]
#[ignore = "slow: each fault alone, on three hosts"]
fn each_fault_alone_on_three_hosts() {
    each(Kind::PatchThenMinor, THREE_HOSTS);
}

#[test]
#[ignore = "slow: each fault alone, over two minors and on three hosts"]
fn each_fault_alone_over_two_minors_on_three_hosts() {
    each(Kind::TwoMinors, THREE_HOSTS);
}

#[test]
#[ignore = "slow: each fault alone, with a hold in each hop"]
fn each_fault_alone_held() {
    let held = |name, fault| two_minors(&format!("{name}, held"), fault).held().on(TWO_HOSTS);
    must_all_be_sound(ALL.map(|(name, fault)| held(name, fault)));
}

//! Each kind of change without a fault, and each fault alone.

use super::{faults::ALL, must_all_be_sound, scenario::Scenario};

macro_rules! sound {
    ($($(#[$mark:meta])* $name:ident: $scenario:expr;)*) => {
        $(#[test]
        $(#[$mark])*
        fn $name() {
            let scenario: fn(&str) -> Scenario = $scenario;
            $crate::must_be_sound(scenario(stringify!($name)));
        })*
    };
}
pub(crate) use sound;

sound! {
    one_to_two: |name| Scenario::scale(name, 1, 2);
    two_to_three: |name| Scenario::scale(name, 2, 3);
    one_to_three: |name| Scenario::scale(name, 1, 3);
    three_to_two: |name| Scenario::scale(name, 3, 2);
    three_to_one: |name| Scenario::scale(name, 3, 1);
    replace: |name| Scenario::replace(name, 3).on(&[0, 2, 3]);
    replace_the_dead: |name| Scenario::replace(name, 3).of_the_dead().on(&[0, 3]);
    replace_itself: |name| Scenario::replace_itself(name, 3).on(&[0, 2]);
}

/// Each fault alone.
fn each_fault(scenario: &Scenario) {
    must_all_be_sound(ALL.into_iter().map(|(name, fault)| {
        let named = Scenario { name: format!("{} and {name}", scenario.name), ..scenario.clone() };
        named.under(fault)
    }));
}

macro_rules! each {
    ($($(#[$mark:meta])* $name:ident: $scenario:expr;)*) => {
        mod each {
            use super::{Scenario, each_fault};
            $(#[test]
            $(#[$mark])*
            fn $name() {
                let scenario: fn(&str) -> Scenario = $scenario;
                each_fault(&scenario(stringify!($name)));
            })*
        }
    };
}

each! {
    one_to_two: |name| Scenario::scale(name, 1, 2).frail(&[1]);
    two_to_three: |name| Scenario::scale(name, 2, 3).frail(&[2]);
    three_to_two: |name| Scenario::scale(name, 3, 2).frail(&[2]);
    replace: |name| Scenario::replace(name, 3).on(&[0, 2, 3]).frail(&[2, 3]);
    replace_the_dead: |name| Scenario::replace(name, 3).of_the_dead().on(&[0, 3]).frail(&[3]);
    replace_the_dead_of_four: |name| Scenario::replace(name, 4).of_the_dead().on(&[0, 4]).frail(&[4]);
    replace_itself: |name| Scenario::replace_itself(name, 3).on(&[0, 2]).frail(&[2]);
}

sound! {
    remove_from_two: |name| Scenario::scale(name, 1, 2).under(|f| f.remove = 1);
    #[ignore = "slow: 300,000 to 3,000,000 states; a scaling to two has the same fault by default"]
    remove_from_three: |name| Scenario::scale(name, 2, 3).under(|f| f.remove = 1);
    #[ignore = "slow: 300,000 to 3,000,000 states; a scaling to two has the same fault by default"]
    remove_from_three_to_two: |name| Scenario::scale(name, 3, 2).under(|f| f.remove = 1);
    #[ignore = "slow: 300,000 to 3,000,000 states; a scaling to two has the same fault by default"]
    remove_while_replacing: |name| Scenario::replace(name, 3).on(&[0, 2, 3]).under(|f| f.remove = 1);
    remove_while_replacing_the_dead: |name| Scenario::replace(name, 3).of_the_dead().on(&[0, 3]).under(|f| f.remove = 1);
    remove_while_replacing_itself: |name| Scenario::replace_itself(name, 3).on(&[0, 2]).under(|f| f.remove = 1);
}

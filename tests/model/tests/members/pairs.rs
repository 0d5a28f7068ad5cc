//! Two faults at once, and clusters of other sizes.

use super::{
    faults::{ALL, Faults},
    must_all_be_sound,
    scenario::Scenario,
    singles::sound,
};

fn split(faults: &mut Faults) {
    faults.split_looks = true;
}

sound! {
    one_to_two_in_halves: |name| Scenario::scale(name, 1, 2).under(split);
    #[ignore = "slow: 230,000 states; other changes are looked at in halves by default"]
    two_to_three_in_halves: |name| Scenario::scale(name, 2, 3).under(split);
    three_to_two_in_halves: |name| Scenario::scale(name, 3, 2).under(split);
    replace_in_halves: |name| Scenario::replace(name, 3).on(&[2, 3]).under(split);
    replace_the_dead_in_halves: |name| Scenario::replace(name, 3).of_the_dead().on(&[0, 3]).under(split);
    replace_itself_in_halves: |name| Scenario::replace_itself(name, 3).on(&[0, 2]).under(split);
    replace_one_of_one: |name| Scenario::replace(name, 1);
    replace_one_of_two: |name| Scenario::replace(name, 2);
    replace_one_of_five: |name| Scenario::replace(name, 5).on(&[0, 4, 5]);
    replace_the_dead_of_five: |name| Scenario::replace(name, 5).of_the_dead().on(&[0, 5]);
    replace_the_dead_of_five_early: |name| Scenario::replace(name, 5).of_the_dead().on(&[0, 5]).early();
    three_to_five: |name| Scenario::scale(name, 3, 5).on(&[3, 4]);
    three_to_five_two_at_once: |name| Scenario::scale(name, 3, 5).on(&[3, 4]).two_at_once();
    three_to_five_two_at_once_and_a_kill: |name| Scenario::scale(name, 3, 5).on(&[3, 4]).two_at_once().under(|f| f.kill = 1);
    #[ignore = "slow: 300,000 to 3,000,000 states; a scaling to two has the same fault by default"]
    one_to_three_two_at_once_and_a_removal: |name| Scenario::scale(name, 1, 3).two_at_once().under(|f| f.remove = 1);
    one_to_three_two_at_once_and_a_call: |name| Scenario::scale(name, 1, 3).on(&[1, 2]).two_at_once().under(|f| f.call = 1);
    five_to_three: |name| Scenario::scale(name, 5, 3).on(&[0, 3, 4]);
    one_to_three_and_a_kill: |name| Scenario::scale(name, 1, 3).on(&[1, 2]).under(|f| f.kill = 1);
    one_to_three_and_a_call: |name| Scenario::scale(name, 1, 3).on(&[1, 2]).under(|f| f.call = 1);
    three_to_one_and_a_call: |name| Scenario::scale(name, 3, 1).under(|f| f.call = 1);
}

sound! {
    held_one_to_three: |name| Scenario::scale(name, 1, 3).held();
    held_three_to_two: |name| Scenario::scale(name, 3, 2).held();
    held_three_to_two_and_a_hold: |name| Scenario::scale(name, 3, 2).held().under(|f| f.hold = 1);
    held_two_to_three_and_a_mark: |name| Scenario::scale(name, 2, 3).held().under(|f| f.mark = 1);
    held_one_to_two_and_a_tool: |name| Scenario::scale(name, 1, 2).held().under(|f| f.unhold = 1);
    #[ignore = "slow: 155,000 states; each of the three is searched alone by default"]
    held_one_to_two_and_all_three: |name| Scenario::scale(name, 1, 2).held().under(|f| (f.unhold, f.mark, f.hold) = (1, 1, 1));
    held_one_to_two_killed: |name| Scenario::scale(name, 1, 2).held().under(|f| (f.kill, f.mark) = (1, 1));
    held_one_to_two_in_halves: |name| Scenario::scale(name, 1, 2).held().under(split).under(|f| f.mark = 1);
    held_replace: |name| Scenario::replace(name, 3).on(&[2, 3]).held();
    held_replace_and_a_hold: |name| Scenario::replace(name, 3).on(&[2, 3]).held().under(|f| f.hold = 1);
    held_replace_and_a_mark: |name| Scenario::replace(name, 3).on(&[2, 3]).held().under(|f| f.mark = 1);
    held_replace_the_dead_and_a_hold: |name| Scenario::replace(name, 3).of_the_dead().on(&[0, 3]).held().under(|f| f.hold = 1);
    held_replace_the_dead_and_a_tool: |name| Scenario::replace(name, 3).of_the_dead().on(&[0, 3]).held().under(|f| f.unhold = 1);
    held_replace_itself_and_a_mark: |name| Scenario::replace_itself(name, 3).on(&[0, 2]).held().under(|f| f.mark = 1);
}

/// Every two faults, the same one twice too.
fn each_pair(scenario: &Scenario) {
    let pairs = ALL.iter().enumerate().flat_map(|(at, first)| ALL[at..].iter().map(move |second| (first, second)));
    must_all_be_sound(pairs.map(|((first, one), (second, another))| {
        let name = format!("{} with {first} and {second}", scenario.name);
        Scenario { name, ..scenario.clone() }.under(one).under(another)
    }));
}

macro_rules! pairs {
    ($($(#[$mark:meta])* $name:ident: $scenario:expr;)*) => {
        mod pairs {
            use super::{Scenario, each_pair};
            $(#[test]
            $(#[$mark])*
            fn $name() {
                let scenario: fn(&str) -> Scenario = $scenario;
                each_pair(&scenario(stringify!($name)));
            })*
        }
    };
}

pairs! {
    #[ignore = "slow: every two faults; each alone is searched by default"]
    one_to_two: |name| Scenario::scale(name, 1, 2).frail(&[1]);
    #[ignore = "slow: every two faults; each alone is searched by default"]
    replace_the_dead: |name| Scenario::replace(name, 3).of_the_dead().on(&[0, 3]).frail(&[3]);
    #[ignore = "slow: every two faults; each alone is searched by default"]
    replace_itself: |name| Scenario::replace_itself(name, 3).on(&[0, 2]).frail(&[2]);
    #[ignore = "slow: an hour, every two faults; each alone is searched by default"]
    replace: |name| Scenario::replace(name, 3).on(&[0, 2, 3]).frail(&[2, 3]);
    #[ignore = "slow: every two faults; each alone is searched by default"]
    three_to_two: |name| Scenario::scale(name, 3, 2).on(&[0, 2]).frail(&[2]);
}

use std::collections::{BTreeMap, BTreeSet};

use lab::system::System;

use super::{hosts::Cast, sound::sound, *};
use crate::model::{Column, Path};

fn cell(size: usize, column: Column, seed: u64) -> Cell {
    let path = Path { from: "3.5.30".parse().unwrap(), to: "3.6.14".parse().unwrap() };
    Cell { system: System::Etcd, path, size, tls: false, past: None, column, seed }
}

#[test]
fn a_seed_is_a_plan() {
    let cells = [
        cell(3, Column::None, 1),
        cell(3, Column::Mixed, 1),
        cell(3, Column::Mixed, 2),
        cell(5, Column::Mixed, 3),
        cell(3, Column::AgentKilled, 4),
        cell(3, Column::PowerCut, 5),
        cell(1, Column::None, 6),
        cell(3, Column::MembersChange, 7),
        cell(1, Column::MembersChange, 8),
    ];
    let trees: Vec<_> = cells.iter().map(|cell| plan(cell).to_string()).collect();
    insta::assert_snapshot!(trees.join("\n"));
}

#[test]
fn every_plan_is_sound_comes_to_the_end_and_is_the_same_again() {
    for column in Column::ALL {
        for size in [1, 2, 3, 5, 7] {
            for seed in 0..400 {
                let cell = cell(size, column, seed);
                let made = plan(&cell);
                assert_eq!(sound(&made), Ok(()), "{made}");
                assert_eq!(made, plan(&cell));
                let since_back = made.steps.iter().rev().take_while(|step| step.action != Action::Back);
                let forward: BTreeSet<_> = since_back
                    .filter_map(|step| match &step.action {
                        Action::Forward { hosts, .. } => Some(hosts.clone()),
                        Action::TooLate { last } => Some(vec![*last]),
                        _ => None,
                    })
                    .flatten()
                    .collect();
                let before_last = made.with_members().filter(|(_, step)| !step.action.changes_members()).last();
                let (members, _) = before_last.expect("a start");
                assert_eq!(forward, members.into_iter().collect(), "{made}");
                if column == Column::MembersChange {
                    assert!(made.steps.iter().any(|step| step.action.changes_members()), "{made}");
                }
                if column.has_faults() && size >= 3 {
                    let has_fault = made.steps.iter().any(|step| !step.faults.is_empty());
                    let has_company = made
                        .steps
                        .iter()
                        .any(|step| matches!(step.action, Action::Forward { pace: Pace::Together, .. } | Action::Back));
                    let can_have = column != Column::AgentLate || has_company;
                    assert!(has_fault || !can_have, "{made}");
                }
            }
        }
    }
}

#[test]
fn most_plans_go_back_in_the_middle_and_every_kind_of_fault_is_made() {
    let plans: Vec<_> = (0..1_000).map(|seed| plan(&cell(3, Column::Mixed, seed))).collect();
    let back = plans.iter().filter(|plan| plan.steps.iter().any(|step| step.action == Action::Back)).count();
    assert!((700..900).contains(&back), "{back}");
    let mut kinds = BTreeMap::new();
    for fault in plans.iter().flat_map(|plan| &plan.steps).flat_map(|step| &step.faults) {
        let debug = format!("{:?}", fault.trouble);
        *kinds.entry(debug.split(' ').next().unwrap().to_owned()).or_insert(0) += 1;
    }
    assert_eq!(kinds.len(), 15, "{kinds:?}");
    assert!(kinds.values().all(|count| *count > 50), "{kinds:?}");
}

#[test]
fn no_two_faults_that_take_a_member_away_fit_into_one_step() {
    let ms = Duration::from_millis(1);
    let killed = |member| Trouble::MemberKilled { member, back_after: ms };
    let with = |action: Action, faults: &[Trouble]| Step {
        id: 1,
        action,
        faults: faults.iter().zip(1..).map(|(trouble, id)| Fault { id, trouble: trouble.clone() }).collect(),
    };
    let rest = || Action::Rest { lasts: ms };
    let roll = || Action::Forward { hosts: vec![0, 1], pace: Pace::Together };
    let late = |host| Trouble::AgentLate { host, by: ms };
    let agent = |host| Trouble::AgentKilled { host, sync: 1, moment: Moment::After };
    let cut_off = |member| Trouble::MemberCutOff { member, lasts: ms };
    let alarmed = |of| Trouble::AlarmRaised { of, lasts: ms };
    let moved = || Trouble::LeaderMoved { to: 0, after: 0 };
    let of = |step: &Step, size: usize| {
        let cast = Cast::of(step, &(0..size).collect::<Vec<_>>());
        Cast { steady: cast.stay.clone(), ..cast }
    };
    let short = |host| Trouble::AgentCutShort { host, after: 1 };
    let lost = || Action::Replace { member: 0, by: 0 };
    let scaled = || Action::Scale { to: vec![0, 1, 2, 3, 4] };
    let cases = [
        (with(lost(), &[]), killed(1), 3, false), // one is gone already
        (with(lost(), &[]), moved(), 3, false),   // has no data
        (with(scaled(), &[]), moved(), 3, true),
        (with(scaled(), &[]), agent(0), 3, false), // nothing of it is in a journal
        (with(scaled(), &[]), short(4), 3, true),
        (with(scaled(), &[]), late(4), 3, true),
        (with(scaled(), &[]), short(5), 3, false),
        (with(roll(), &[]), short(0), 3, false),
        (with(roll(), &[]), killed(0), 3, true),
        (with(roll(), &[]), killed(0), 2, false), // no quorum without it
        (with(roll(), &[killed(1)]), killed(0), 5, false),
        (with(roll(), &[killed(1)]), cut_off(0), 5, false),
        (with(roll(), &[cut_off(1)]), killed(0), 5, false),
        (with(roll(), &[]), cut_off(0), 3, true),
        (with(roll(), &[]), cut_off(0), 2, false),
        (with(roll(), &[killed(1)]), moved(), 3, false),
        (with(roll(), &[moved()]), killed(1), 3, false),
        (with(roll(), &[killed(1)]), agent(0), 3, true), // an agent is no member
        (with(roll(), &[agent(0)]), agent(0), 3, false),
        (with(roll(), &[agent(0)]), late(0), 3, false),
        (with(roll(), &[agent(0)]), late(1), 3, true),
        (with(roll(), &[late(1)]), late(0), 3, false), // somebody must be in time
        (with(roll(), &[]), agent(2), 3, false),       // has no part in it
        (with(roll(), &[]), Trouble::MemberRestarted { member: 2 }, 3, false), // two would be down
        (with(rest(), &[]), Trouble::MemberRestarted { member: 2 }, 3, true),
        (with(rest(), &[]), Trouble::HostsGuarded, 3, true),
        (with(rest(), &[killed(0)]), Trouble::HostsGuarded, 3, false), // they would wait for it
        (with(roll(), &[]), Trouble::HostsGuarded, 3, false),          // agents have the hosts
        (with(rest(), &[]), agent(0), 3, false),
        (with(rest(), &[]), alarmed(0), 3, false), // nobody is there to wait for it
        (with(roll(), &[]), alarmed(2), 3, true),
        (with(roll(), &[agent(0)]), alarmed(0), 3, true),
        (with(roll(), &[killed(0)]), alarmed(1), 3, false),
        (with(roll(), &[alarmed(0)]), moved(), 3, false),
        (with(scaled(), &[]), alarmed(0), 3, false),
        (with(Action::Start { leader: 0 }, &[]), killed(0), 3, false),
        (with(Action::TooLate { last: 1 }, &[]), killed(0), 3, false),
    ];
    for (step, trouble, size, does_fit) in cases {
        assert_eq!(edit::fits(&step, &trouble, &of(&step, size)), does_fit, "{:?} and {trouble:?}", step.faults);
    }
}

#[test]
fn a_part_of_a_plan_keeps_its_names_and_may_be_unsound() {
    let whole = plan(&cell(3, Column::Mixed, 1));
    let parts = whole.parts();
    assert_eq!(whole.only(&parts.iter().cloned().collect()), whole);
    let but_start = parts.iter().filter(|part| *part != "1").cloned().collect();
    assert_eq!(sound(&whole.only(&but_start)), Err(sound::Unsound::Start));
    let steps = parts.iter().filter(|part| !part.contains('.')).cloned().collect();
    let without_faults = whole.only(&steps);
    assert_eq!(without_faults.steps.len(), whole.steps.len());
    assert!(without_faults.steps.iter().all(|step| step.faults.is_empty()));
}

//! The table of journal and record, row by row: what the same command does after a crash.

use super::*;
use crate::{
    keys::{AttemptId, Keys, RunState},
    machine::driven::{ATTEMPT, Driven, baton, in_hand, keys, process, record},
};

const OTHER: AttemptId = AttemptId(8);

/// What stands of the step in the keys.
#[derive(Clone, Copy, Debug)]
enum Stands {
    Nothing,
    Record,
    Lost,
}
use Stands::{Lost, Nothing, Record};

fn with(stands: Stands) -> Keys {
    let mut keys = keys(RunState::Rolling);
    match stands {
        Nothing => {}
        Record => keys.step = Some(record(1, 1, ATTEMPT)),
        Lost => drop(keys.abandoned.insert(MemberId(1), record(1, 1, ATTEMPT))),
    }
    keys
}

/// A new binary that failed before the crash fails again, and is left once more; the old one is sick, too, in these
/// tests.
const GOING_BACK_AGAIN: &str = "switch new, start, ready, look, look, note stopping back, stop, let polls end, look, \
     switch old, note switched back, note starting back, start, ready, look, run failed";

#[test]
fn a_step_in_the_journal_is_settled_by_what_stands_of_it() {
    use Direction::{Back, Forward};
    use Stage::{Done, Planned, Starting, Stopping, Switched};
    let (healthy, sick) = ("1+ 2+ 3+", "1. 2+ 3+");
    for (stage, stands, view, acts) in [
        (Planned, Nothing, healthy, "look, note forgotten"),
        (Planned, Record, healthy, "look, delete step"),
        (Planned, Record, sick, "look, ready, look, look, run failed"),
        (Planned, Lost, healthy, "look, delete abandoned"),
        (Stopping(Forward), Record, healthy, "switch old, start, ready, look, delete step"),
        (Switched(Forward), Record, healthy, "switch old, start, ready, look, delete step"),
        (
            Starting(Forward),
            Record,
            healthy,
            "switch new, start, ready, look, note done forward, look, delete step and run rolling",
        ),
        (Stopping(Forward), Record, sick, "switch old, start, ready, look, look, run failed"),
        (Stopping(Forward), Lost, healthy, "switch old, start, ready, look, delete abandoned"),
        (Switched(Forward), Lost, healthy, "switch old, start, ready, look, delete abandoned"),
        (Stopping(Forward), Nothing, healthy, "switch old, start, ready, look, note forgotten"),
        (Stopping(Back), Record, healthy, "switch new, start, ready, look, delete step"),
        (Stopping(Back), Record, sick, GOING_BACK_AGAIN),
        (Switched(Back), Record, sick, GOING_BACK_AGAIN),
        (Done(Forward), Record, healthy, "look, delete step and run rolling"),
        (Done(Forward), Nothing, healthy, "look, note forgotten"),
    ] {
        let found = Driven::new(with(stands), view).start(Some(in_hand(stage)));
        // What comes after is a start like any.
        let found = found.split(", prepare").next().unwrap();
        assert_eq!(found, acts, "{stage:?} {stands:?} {view}");
    }
}

/// What runs in the place of a member that was replaced is none of the step's: it is not stopped.
#[test]
fn a_step_of_a_member_that_was_removed_is_let_go() {
    for (stands, acts) in [
        (Record, "switch new, start, ready, look, delete step"),
        (Lost, "switch new, start, ready, look, delete abandoned"),
        (Nothing, "switch new, start, ready, look, note forgotten"),
    ] {
        let mut driven = Driven::new(with(stands), "2+ 3+ 4+");
        driven.removed = vec![MemberId(1)];
        let found = driven.start(Some(in_hand(Stage::Starting(Direction::Forward))));
        assert_eq!(found.split(", prepare").next().unwrap(), acts, "{stands:?}");
    }
}

/// One member that lies would have the record deleted of a member that is down.
#[test]
fn a_step_of_a_member_that_nobody_lists_keeps_its_record_until_enough_say_that_it_was_removed() {
    for stage in [Stage::Planned, Stage::Starting(Direction::Forward), Stage::Done(Direction::Forward)] {
        for stands in [Record, Lost] {
            let mut driven = Driven::new(with(stands), "2+ 3. 4+");
            let found = driven.start(Some(in_hand(stage)));
            assert!(found.ends_with("look, wait Answer"), "{stage:?} {stands:?}: {found}");
            assert_eq!(driven.then(Event::Woke { expired: true }), "end NoAnswer", "{stage:?} {stands:?}");
        }
    }
}

/// Records that no journal speaks of: whose they are decides.
#[test]
fn a_record_without_a_journal_is_adopted_only_where_its_agent_is_known_to_be_gone() {
    for (member, by, attempt_gone, view, acts) in [
        (1, 1, true, "1+ 2+ 3+", "delete step"), // a forgotten Txn of this host landed late
        (1, 1, true, "1. 2+ 3+", "wait Ready"),  // looked after first
        (2, 1, true, "1+ 2. 3+", "wait Record"), // of a member that runs elsewhere
        (1, 4, true, "1+ 2+ 3+", "delete step"), // the state directory is new, the agent gone
        (1, 4, false, "1+ 2+ 3+", "end Refused StepOfAnother"), // it may still live
        (2, 2, false, "1+ 2. 3+", "wait Record"), // another host's
        (4, 2, false, "1+ 2+ 3+", "delete step"), // its member has left the membership
        (4, 2, false, "1+ 2. 3.", "wait Record"), // so one member says
    ] {
        let mut keys = keys(RunState::Rolling);
        keys.step = Some(record(member, by, OTHER));
        let mut driven = Driven::new(keys, view);
        driven.gone = if attempt_gone { vec![process(8), process(9)] } else { vec![process(8)] };
        let found = driven.start(None);
        assert_eq!(
            found,
            format!("prepare, look, register, look, {acts}"),
            "{member} by {by}, gone {attempt_gone}, {view}"
        );
    }
}

#[test]
fn a_baton_of_an_earlier_process_is_cleared_before_anything_else() {
    let mut keys = keys(RunState::Rolling);
    keys.baton = Some(baton(1, 9));
    assert_eq!(Driven::new(keys, "1+ 2+ 3+").start(None), "prepare, look, register, look, delete baton");
}

#[test]
fn a_step_that_nobody_can_be_told_of_waits_and_then_leaves_its_record() {
    for (answer, end) in
        [(Event::Woke { expired: true }, "end NoAnswer"), (Event::Woke { expired: false }, "look, wait Answer")]
    {
        let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3+").without_answers();
        assert_eq!(driven.start(Some(in_hand(Stage::Done(Direction::Forward)))), "look, wait Answer");
        assert_eq!(driven.then(answer), end);
    }
    let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3+").without_answers();
    driven.start(Some(in_hand(Stage::Done(Direction::Forward))));
    driven.then(Event::Interrupted);
    assert_eq!(driven.then(Event::Woke { expired: false }), "look, end NoAnswer", "a signal ends the wait");
}

/// A sending that was given up ends the step between two looks of the next process, whose member is down by itself.
#[test]
fn a_step_that_ended_late_and_well_is_not_marked() {
    let mut keys = keys(RunState::Rolling);
    keys.step = Some(record(1, 1, ATTEMPT));
    let mut driven = Driven::new(keys, "1. 2+ 3+");
    let mut act =
        driven.agent.on(Event::Started { in_hand: Some(in_hand(Stage::Done(Direction::Forward))), down: Vec::new() });
    let mut words = Vec::new();
    while let Some(asked) = act {
        words.push(crate::machine::driven::word(&asked));
        if words.iter().filter(|word| *word == "look").count() == 3 {
            driven.keys.step = None;
        }
        act = driven.answer(&asked);
    }
    assert_eq!(words.join(", "), "look, ready, look, look, end Sick");
}

/// A state directory was copied with its journal: where the agent that put the record is at work, nothing of it is touched.
#[test]
fn a_step_of_a_twin_is_left_alone() {
    use Direction::Forward;
    for (stage, acts) in [
        (None, "prepare, look, end Refused TwinHost"),
        (Some(Stage::Planned), "look, end Refused TwinHost"),
        (Some(Stage::Starting(Forward)), "switch new, start, ready, look, end Refused TwinHost"),
        (Some(Stage::Done(Forward)), "look, end Refused TwinHost"),
    ] {
        let mut driven = Driven::new(with(Record), "1+ 2+ 3+");
        driven.gone = vec![process(8)];
        assert_eq!(driven.start(stage.map(in_hand)), acts, "{stage:?}");
    }
}

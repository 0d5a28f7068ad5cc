use super::*;
use crate::{
    keys::{Keys, ProcessId, rules::Rules},
    machine::driven::{Driven, baton, process, record},
    plan::{Guard as Asked, Me, samples},
};

const ATTEMPT: AttemptId = crate::machine::driven::ATTEMPT;

fn command(reboots: bool) -> Command {
    let init = ProcessId { pid: 1, ..process(1) };
    Command { process: process(77), init, reboots }
}

/// The guard of a host with member 1, where no run stands.
fn driven(asked: Asked, view: &str) -> Driven {
    let me = Me { verb: Verb::Guard(asked), ..samples::me(&[1]) };
    let agent = Agent::new(Arc::new(me), Rules::default(), process(1));
    Driven { agent, ..Driven::new(Keys::default(), view) }
}

fn in_hand(stage: Stage) -> Option<progress::InHand> {
    Some(progress::InHand::Guarded(InHand { step: Step { member: MemberId(1), attempt: ATTEMPT }, stage }))
}

/// Up to the command's process.
fn locked(guard: &mut Driven) -> String {
    let mut acts = guard.start(None);
    guard.keys.baton = Some(baton(1, 1));
    acts += "; ";
    acts += &guard.then(Event::Yes(Revision(5)));
    // The attempt has the id that every look of these tests offers.
    guard.keys.step = Some(record(1, 1, AttemptId(11)));
    acts += "; ";
    acts += &guard.then(Event::Yes(Revision(5)));
    acts
}

#[test]
fn the_lock_stands_and_was_looked_at_before_the_command_and_goes_after_its_members_are_ready() {
    let mut guard = driven(Asked::Command, "1+ 2+ 3*");
    let acts = locked(&mut guard);
    assert_eq!(
        acts,
        "prepare, look, register, look, take baton; look, note planned step, look, put step; look, confirm, spawn, \
         note runs command, command, await host, look, ready, look, delete step"
    );
    guard.keys.step = None;
    assert_eq!(guard.then(Event::Yes(Revision(9))), "note forgotten, give back");
    assert_eq!(guard.then(Event::Done), "end Guarded");
}

#[test]
fn leadership_is_passed_on_before_the_lock() {
    let mut guard = driven(Asked::Command, "1* 2+ 3+");
    guard.start(None);
    guard.keys.baton = Some(baton(1, 1));
    assert_eq!(guard.then(Event::Yes(Revision(5))), "look, hand over");
}

#[test]
fn a_lock_whose_host_may_no_longer_go_is_taken_away_and_nothing_runs() {
    let mut guard = driven(Asked::Command, "1+ 2+ 3*");
    guard.start(None);
    guard.keys.baton = Some(baton(1, 1));
    guard.then(Event::Yes(Revision(5)));
    guard.keys.step = Some(record(1, 1, AttemptId(11)));
    guard.view = samples::view("1+ 2. 3*");
    assert_eq!(guard.then(Event::Yes(Revision(5))), "look, look, delete step");
}

#[test]
fn a_command_that_fails_ends_its_step_like_any_other() {
    let mut guard = driven(Asked::Command, "1+ 2+ 3*");
    guard.fails = |act| *act == Act::Command;
    assert!(locked(&mut guard).ends_with("command, await host, look, ready, look, delete step"));
    guard.keys.step = None;
    guard.then(Event::Yes(Revision(9)));
    let failed = Some(Arc::from("it does not work"));
    assert_eq!(guard.agent.ending(), Some(&Ending::Guarded { failed }));
}

#[test]
fn an_earlier_guards_step_is_ended_by_whoever_comes_next() {
    for (stage, view, down, acts) in [
        (Stage::Planned, "1+ 2+ 3*", vec![], "look, delete step"), // its command never began
        (Stage::Runs(command(false)), "1+ 2+ 3*", vec![], "await host, look, ready, look, delete step"),
        (Stage::Runs(command(true)), "1. 2+ 3*", vec![1], "await host, look, start, ready, end Sick"),
    ] {
        for verb in [Verb::Run, Verb::Guard(Asked::Finish)] {
            let mut guard = driven(Asked::Finish, view);
            guard.agent = Agent::new(Arc::new(Me { verb, ..samples::me(&[1]) }), Rules::default(), process(1));
            guard.keys.step = Some(record(1, 1, ATTEMPT));
            guard.down = down.iter().copied().map(MemberId).collect();
            assert_eq!(guard.start(in_hand(stage)), acts, "{stage:?} {verb:?}");
        }
    }
}

/// Two voters, and the power was lost before the command: the keys come back only with this host's own member.
#[test]
fn what_is_down_is_started_where_the_keys_cannot_be_read() {
    let mut guard = driven(Asked::Finish, "1. 2+").without_answers();
    guard.down = vec![MemberId(1)];
    assert_eq!(guard.start(in_hand(Stage::Planned)), "look, start, ready, end Sick");
}

/// To say that it ran would be untrue: what ran is another one, of a process before it.
#[test]
fn a_guard_that_ends_an_earlier_ones_step_then_runs_its_own_command() {
    let mut guard = driven(Asked::Command, "1+ 2+ 3*");
    guard.keys.step = Some(record(1, 1, ATTEMPT));
    let acts = guard.start(in_hand(Stage::Runs(command(false))));
    assert_eq!(acts, "await host, look, ready, look, delete step");
    guard.keys.step = None;
    assert_eq!(guard.then(Event::Yes(Revision(9))), "note forgotten, prepare, look, register, look, take baton");
}

#[test]
fn a_step_that_was_given_up_is_ended_by_its_sign() {
    let mut guard = driven(Asked::Finish, "1+ 2+ 3*");
    guard.keys.abandoned.insert(MemberId(1), record(1, 1, ATTEMPT));
    let acts = guard.start(in_hand(Stage::Runs(command(false))));
    assert_eq!(acts, "await host, look, ready, look, delete abandoned");
}

#[test]
fn who_only_asks_writes_nothing() {
    for (view, expected) in [("1+ 2+ 3*", "end MayGo"), ("1+ 2. 3*", "end Refused NotReady")] {
        let mut guard = driven(Asked::Check, view);
        assert_eq!(guard.start(None), format!("prepare, look, {expected}"), "{view}");
    }
    let mut guard = driven(Asked::Check, "1. 2+ 3*");
    guard.down = vec![MemberId(1)];
    assert_eq!(guard.start(None), "prepare, look, end MayGo", "what is down stays so");
    let mut guard = driven(Asked::Check, "1+ 2+ 3*");
    assert_eq!(guard.start(in_hand(Stage::Runs(command(false)))), "end NotYet Ready");
    let mut guard = driven(Asked::Check, "1+ 2- 3*");
    guard.keys.step = Some(record(2, 2, AttemptId(5)));
    assert_eq!(guard.start(None), "prepare, look, end NotYet Record");
}

//! What was seen before the baton decides nothing; and nobody holds it while waiting.

use super::*;
use crate::{
    keys::{AttemptId, Going, Intent},
    machine::driven::{Driven, baton, host, keys, pause, record},
    plan::{Verb, samples},
};

/// An agent that has just asked for the baton.
fn asking(view: &str) -> Driven {
    let mut driven = Driven::new(keys(RunState::Rolling), view);
    assert_eq!(driven.start(None), "prepare, look, register, look, take baton");
    driven
}

#[test]
fn everything_is_decided_again_once_the_baton_is_held() {
    for (change, acts) in [
        ((|_| ()) as fn(&mut Driven), "look, hook, note planned step, look, put step"),
        (|d| d.keys.step = Some(record(2, 2, AttemptId(8))), "look, give back"),
        (|d| drop(d.keys.abandoned.insert(MemberId(2), record(2, 2, AttemptId(8)))), "look, give back"),
        (|d| d.keys.run = keys(RunState::RollingBack).run, "look, give back"),
        (|d| d.keys.run.as_mut().unwrap().value.pause = Some(pause()), "look, give back"),
        (|d| d.view = crate::plan::samples::view("1+ 2. 3+"), "look, give back"),
        (|d| d.view = crate::plan::samples::view("1* 2+ 3+"), "look, give back"), // others go first now
    ] {
        let mut driven = asking("1+ 2+ 3*");
        driven.keys.baton = Some(baton(1, 1));
        change(&mut driven);
        let created = driven.keys.baton.as_ref().unwrap().created;
        assert_eq!(driven.then(Event::Yes(created)), acts);
    }
}

/// Nobody has seen it who typed the command.
#[test]
fn a_mark_that_is_set_after_resume_was_typed_stands() {
    let failed = || RunState::Failed { member: MemberId(2), why: "it".into(), was: Going::Rolling };
    let resuming = |state| Driven::new(keys(state), "1+ 2+ 3*").verb(Verb::Resume);
    let mut healthy = resuming(RunState::Rolling);
    assert_eq!(healthy.start(None), "prepare, look, register, look, take baton");
    healthy.keys.run = keys(failed()).run;
    healthy.keys.baton = Some(baton(1, 1));
    let created = healthy.keys.baton.as_ref().unwrap().created;
    assert_eq!(healthy.then(Event::Yes(created)), "look, give back");

    let mut marked = resuming(failed());
    assert_eq!(marked.start(None), "prepare, look, register, look, run rolling");
    let again = Event::No(Box::new(marked.keys.clone()));
    assert_eq!(marked.then(again), "look, wait FailedOwner", "it is another mark by now");
}

/// An agent that holds the baton of a run which asks for a backup.
fn backing_up() -> Driven {
    let intent = Arc::new(Intent { backup: true, ..samples::intent(">=3.4, <3.5", "3.5.30") });
    let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3*").about(&intent);
    assert_eq!(driven.start(None), "prepare, look, register, look, take baton");
    driven.keys.baton = Some(baton(1, 1));
    driven
}

///
#[test]
fn a_backup_is_made_once_and_then_written_into_the_run() {
    let mut driven = backing_up();
    let created = driven.keys.baton.as_ref().unwrap().created;
    assert_eq!(driven.then(Event::Yes(created)), "look, back up, look, run rolling");
    let again = Event::No(Box::new(driven.keys.clone()));
    assert_eq!(driven.then(again), "look, run rolling", "the run has changed meanwhile; the file is as good as before");
    driven.keys.run.as_mut().unwrap().value.backup = Some(crate::machine::driven::backup());
    assert_eq!(driven.then(Event::Yes(Revision(9))), "look, hook, note planned step, look, put step");
}

/// Whoever had the baton meanwhile may have made another, and removed this one.
#[test]
fn a_backup_is_not_noted_once_the_baton_is_lost() {
    let mut driven = backing_up();
    let created = driven.keys.baton.as_ref().unwrap().created;
    assert_eq!(driven.then(Event::Yes(created)), "look, back up, look, run rolling");
    driven.keys.baton = None;
    let again = Event::No(Box::new(driven.keys.clone()));
    assert_eq!(driven.then(again), "look, take baton");
    driven.keys.baton = Some(baton(1, 1));
    assert_eq!(driven.then(Event::Yes(created)), "look, back up, look, run rolling");
}

/// However long it takes until a member may go.
#[test]
fn a_backup_is_noted_though_nobody_may_go_now() {
    let mut driven = backing_up();
    let created = driven.keys.baton.as_ref().unwrap().created;
    let mut act = driven.agent.on(Event::Yes(created));
    let mut words = Vec::new();
    while let Some(asked) = act {
        words.push(crate::machine::driven::word(&asked));
        if asked == Act::BackUp {
            driven.view = samples::view("1+ 2. 3*");
        }
        act = driven.answer(&asked);
    }
    assert_eq!(words.join(", "), "look, back up, look, run rolling");
}

#[test]
fn a_backup_of_one_run_is_none_of_the_next() {
    let mut driven = backing_up();
    let created = driven.keys.baton.as_ref().unwrap().created;
    assert_eq!(driven.then(Event::Yes(created)), "look, back up, look, run rolling");
    driven.keys.run.as_mut().unwrap().value.id = RunId(99);
    let other = Event::No(Box::new(driven.keys.clone()));
    assert_eq!(driven.then(other), "look, back up, look, run rolling");
}

#[test]
fn without_its_backup_nothing_is_changed() {
    let mut driven = backing_up();
    driven.fails = |act| *act == Act::BackUp;
    let created = driven.keys.baton.as_ref().unwrap().created;
    assert_eq!(driven.then(Event::Yes(created)), "look, back up, give back");
    assert_eq!(driven.then(Event::Done), "end NotBackedUp");
}

#[test]
fn a_baton_that_somebody_else_got_is_waited_for() {
    let mut driven = asking("1+ 2+ 3*");
    let mut keys = driven.keys.clone();
    keys.baton = Some(baton(2, 1));
    assert_eq!(driven.then(Event::No(Box::new(keys))), "wait Baton");
}

#[test]
fn a_baton_whose_putting_may_still_land_is_revoked_before_the_wait() {
    let mut driven = asking("1+ 2+ 3*");
    assert_eq!(driven.then(Event::Unknown { give_up: false }), "take baton", "the identical one again");
    let mut keys = driven.keys.clone();
    keys.baton = Some(baton(2, 1));
    assert_eq!(driven.then(Event::No(Box::new(keys))), "give back");
    assert_eq!(driven.then(Event::Done), "wait Baton");
}

#[test]
fn a_run_is_ended_only_as_it_stands_after_the_cluster_settled() {
    for (state, acts) in [
        (RunState::Rolling, "settle, look, run done"),
        (RunState::Done { result: RunResult::Reached }, "settle, look, end Finished Done Reached"),
    ] {
        let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3+");
        for member in 0..3 {
            crate::plan::samples::with_release(&mut driven.view, member, "3.5.30");
        }
        let mut act = driven.agent.on(Event::Started { in_hand: None, down: Vec::new() });
        let mut words = Vec::new();
        while let Some(asked) = act {
            words.push(crate::machine::driven::word(&asked));
            if matches!(asked, Act::AwaitSettled { .. }) {
                driven.keys.run = keys(state.clone()).run;
            }
            act = driven.answer(&asked);
        }
        assert_eq!(words[4..].join(", "), acts);
    }
}

#[test]
fn a_member_that_is_down_is_started_again_unless_it_was_removed() {
    for (view, removed, acts) in [
        ("1. 2+ 3+", vec![], "prepare, look, start, ready, end Sick"),
        ("2+ 3+", vec![MemberId(1)], "prepare, look, register, look, end Refused OwnsNothing"),
        ("2+ 3.", vec![], "prepare, look, start, ready, end Sick"), // one alone says so
    ] {
        let mut driven = Driven::new(keys(RunState::Rolling), view);
        driven.removed = removed;
        driven.down.push(MemberId(1));
        assert_eq!(driven.start(None), acts, "{view}");
    }
}

/// Whoever takes the lead and gives it straight back is not offered it for ever.
#[test]
fn a_member_that_leads_again_after_each_hand_over_is_left_alone() {
    let mut driven = Driven::new(keys(RunState::Rolling), "1* 2+ 3+");
    for member in [2, 3] {
        let run = driven.keys.run.as_mut().unwrap();
        run.value.done.push(MemberId(member));
        crate::plan::samples::with_release(&mut driven.view, usize::try_from(member).unwrap() - 1, "3.5.30");
    }
    assert_eq!(driven.start(None), "prepare, look, register, look, take baton");
    driven.keys.baton = Some(baton(1, 1));
    assert_eq!(driven.then(Event::Yes(Revision(5))), "look, hand over");
    assert_eq!(driven.then(Event::Done), "look, hand over");
    assert_eq!(driven.then(Event::Done), "look, hand over");
    assert_eq!(driven.then(Event::Done), "look, give back");
    assert_eq!(driven.then(Event::Done), "end HandOver");
}

#[test]
fn nothing_is_asked_of_a_cluster_that_nobody_leads() {
    let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3+");
    driven.view.leader = crate::observe::view::Leader::Unknown;
    assert_eq!(driven.start(None), "prepare, look, end Refused NoLeader");
}

#[test]
fn under_its_own_mark_a_member_that_leads_does_not_wait_for_the_others() {
    let why = Arc::from("slow");
    let failed = RunState::Failed { member: MemberId(1), why, was: crate::keys::Going::Rolling };
    let mut driven = Driven::new(keys(failed), "1* 2+ 3+");
    assert_eq!(driven.start(None), "prepare, look, register, look, take baton");
    driven.keys.baton = Some(baton(1, 1));
    assert_eq!(driven.then(Event::Yes(Revision(5))), "look, hand over");
    assert_eq!(driven.keys.agents.len(), 3, "with {:?} at work too", host(2));
}

/// The keys of a look are read before its members answer: by then this hop may be over, and the next one be under way.
#[test]
fn a_member_that_is_ahead_on_the_way_refuses_the_run_only_after_one_more_look() {
    let [first, second] = crate::plan::samples::way();
    for (release, acts) in [
        ("3.6.14", "prepare, look, register, look, look, end Refused MemberVersion"),
        ("3.6.13", "prepare, look, register, look, end Refused MemberVersion"), // no hop leads there
    ] {
        let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3*").about(&first);
        crate::plan::samples::with_release(&mut driven.view, 1, release);
        assert_eq!(driven.start(None), acts, "{release}");
    }
    let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3*").about(&first);
    (0..3).for_each(|member| crate::plan::samples::with_release(&mut driven.view, member, "3.5.33"));
    crate::plan::samples::with_release(&mut driven.view, 1, "3.6.14");
    let mut act = driven.agent.on(Event::Started { in_hand: None, down: Vec::new() });
    let mut looks = 0;
    while let Some(asked) = act.take_if(|asked| !matches!(asked, Act::Hop(_) | Act::Exit(_))) {
        looks += usize::from(asked == Act::Look);
        act = driven.answer(&asked);
        if looks == 2 {
            driven.keys.run.iter_mut().for_each(|run| run.value.intent = second.clone());
        }
    }
    assert_eq!(act, Some(Act::Hop(Box::new(second.change.clone()))));
}

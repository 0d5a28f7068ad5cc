use proto::{MemberId, Revision};

use crate::{
    journal::{
        progress,
        restart::{Binary, Direction, InHand, Stage, Step},
    },
    keys::{Going, RunState},
    machine::{
        act::{Act, Ending, Event, Left},
        driven::{ATTEMPT, Driven, baton, in_hand, keys, pause, record, word},
        step::restart::UNCONFIRMED,
    },
    plan::{OnFailure, samples},
};

/// Whatever comes after a repaired step, such as the host's other member, needs a host that was found fit.
#[test]
fn after_a_mended_step_the_host_is_prepared_before_anything_else() {
    let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3*");
    samples::with_release(&mut driven.view, 0, "3.5.30");
    driven.keys.step = Some(record(1, 1, ATTEMPT));
    let acts = "switch new, start, ready, look, note done forward, look, delete step and run rolling";
    assert_eq!(driven.start(Some(in_hand(Stage::Starting(Direction::Forward)))), acts);
    let acts = driven.then(Event::Yes(Revision(7)));
    assert!(acts.starts_with("note forgotten, hook after, prepare, look"), "{acts}");
}

/// A member that does not end in time may end later, when nobody looks any more. It runs what it ran; nobody is told of
/// a way back.
#[test]
fn a_member_that_does_not_end_is_started_again_if_it_has() {
    let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3*");
    driven.start(None);
    driven.keys.baton = Some(baton(1, 1));
    driven.then(Event::Yes(Revision(5)));
    let Some(in_hand) = driven.agent.in_hand() else { panic!("a step is in hand") };
    driven.keys.step = Some(record(1, 1, in_hand.attempt()));
    let created = driven.keys.step.as_ref().map(|down| down.created).unwrap();
    driven.fails = |act| matches!(act, Act::Stop(_));
    let acts = "note stopping forward, look, confirm, stop, start, ready, look, delete step and run failed";
    assert_eq!(driven.then(Event::Yes(created)), acts);
    driven.keys.step = None;
    assert_eq!(driven.then(Event::Yes(Revision(9))), "note forgotten, give back");
    assert!(matches!(driven.agent.ending(), Some(Ending::Step { left: Left::AsItWas, .. })));
}

/// What the last look saw may be over by its end; and a voter that is too slow each time does not keep all busy for ever.
#[test]
fn a_stop_that_others_do_not_confirm_is_not_made() {
    let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3*");
    driven.is_confirmed = false;
    assert_eq!(driven.start(None), "prepare, look, register, look, take baton");
    driven.keys.baton = Some(baton(1, 1));
    let mut acts = driven.then(Event::Yes(Revision(5)));
    for _ in 1..UNCONFIRMED {
        assert!(acts.ends_with("look, hook, note planned step, look, put step"), "{acts}");
        assert_eq!(puts_record(&mut driven), "note stopping forward, look, confirm, delete step");
        driven.keys.step = None;
        acts = driven.then(Event::Yes(Revision(9)));
    }
    let acts = "note stopping forward, look, confirm, start, ready, look, delete step and run failed";
    assert_eq!(puts_record(&mut driven), acts);
    driven.keys.step = None;
    driven.then(Event::Yes(Revision(9)));
    let Some(Ending::Step { why, left: Left::AsItWas, .. }) = driven.agent.ending() else { panic!("it was stopped") };
    assert_eq!(&**why, "m2 did not answer");
}

/// The record that was asked for stands.
fn puts_record(driven: &mut Driven) -> String {
    let in_hand = driven.agent.in_hand().expect("a step is in hand");
    let record = record(1, 1, in_hand.attempt());
    let created = record.created;
    driven.keys.step = Some(record);
    driven.then(Event::Yes(created))
}

/// There is nothing else to start, and nobody may be told that the old one runs.
#[test]
fn a_new_binary_that_failed_is_started_again_if_the_old_one_cannot_be_put_back() {
    let mut driven = Driven::new(keys(RunState::Rolling), "1. 2+ 3*");
    driven.keys.step = Some(record(1, 1, ATTEMPT));
    (2..=3).for_each(|at| samples::with_cluster_version(&mut driven.view, at - 1, "3.4"));
    driven.fails = |act| matches!(act, Act::Switch { to: Binary::Old, .. });
    let acts = "switch new, start, ready, look, look, note stopping back, stop, let polls end, look, switch old, \
        switch new, note starting forward, start, ready, look, run failed";
    assert_eq!(driven.start(Some(in_hand(Stage::Starting(Direction::Forward)))), acts);
}

/// That the new binary is well does not make going back done: a person must look at what closed the way.
#[test]
fn a_member_whose_way_back_closes_after_its_stop_is_kept_and_marked() {
    let mut driven = Driven::new(keys(RunState::RollingBack), "1. 2+ 3*");
    driven.keys.step = Some(record(1, 1, ATTEMPT));
    let step = Step { member: MemberId(1), attempt: ATTEMPT, direction: Direction::Back };
    let in_hand = Some(progress::InHand::Restart(InHand { step, stage: Stage::Stopping(Direction::Back) }));
    let mut act = driven.agent.on(Event::Started { in_hand, down: Vec::new() });
    let mut words = Vec::new();
    while let Some(asked) = act {
        words.push(word(&asked));
        if matches!(asked, Act::AwaitPolls) {
            samples::with_cluster_version(&mut driven.view, 1, "3.5");
        }
        act = driven.answer(&asked);
    }
    let acts = "switch new, start, ready, look, look, note stopping back, stop, let polls end, look, \
        note starting forward, start, ready, look, run failed";
    assert_eq!(words.join(", "), acts);
}

/// It may be what keeps the quorum.
#[test]
fn a_new_binary_that_failed_and_runs_is_stopped_only_where_the_others_can_do_without_it() {
    let turned = "switch new, start, ready, look, look, note stopping back, stop, let polls end, look, ";
    let stayed = "switch new, start, ready, look, look, look, run failed";
    let (runs, ended) = (vec![], vec![MemberId(1)]);
    for (view, version, down, turns) in [
        ("1- 2+ 3*", "3.4", &runs, true), // it hangs
        ("1- 2. 3*", "3.4", &runs, false),
        ("1- 2. 3*", "3.4", &ended, true), // starting is free
        ("1- 2~ 3*", "3.4", &runs, false),
        ("1- 2! 3!", "3.4", &runs, false),
        ("1- 2+ 3*", "3.5", &runs, false), // the way back is closed
        ("1- 2+ 3*", "3.5", &ended, true), // and is seen to be so after the 20 s
    ] {
        let mut driven = Driven::new(keys(RunState::Rolling), view);
        driven.keys.step = Some(record(1, 1, ATTEMPT));
        driven.down.clone_from(down);
        samples::with_cluster_version(&mut driven.view, 2, version);
        let acts = driven.start(Some(in_hand(Stage::Starting(Direction::Forward))));
        match turns {
            true => assert!(acts.starts_with(turned), "{view} {version} {down:?}: {acts}"),
            false => assert_eq!(acts, stayed, "{view} {version} {down:?}"),
        }
    }
}

#[test]
fn what_was_brought_up_on_its_new_binary_again_is_looked_at_before_it_turns_round_again() {
    let stayed = "switch new, start, ready, look, look, look, run failed";
    for (direction, state) in [(Direction::Forward, RunState::Rolling), (Direction::Back, RunState::RollingBack)] {
        for stage in [Stage::Stopping(Direction::Back), Stage::Switched(Direction::Back)] {
            let mut driven = Driven::new(keys(state.clone()), "1- 2. 3*");
            driven.keys.step = Some(record(1, 1, ATTEMPT));
            let step = Step { member: MemberId(1), attempt: ATTEMPT, direction };
            assert_eq!(
                driven.start(Some(progress::InHand::Restart(InHand { step, stage }))),
                stayed,
                "{direction:?} {stage:?}"
            );
        }
    }
}

/// The record cannot be deleted while the cluster takes no writes; nothing else is done meanwhile, and nothing is waited
/// for twice.
#[test]
fn a_step_that_ended_under_an_alarm_is_ended_by_its_record_alone() {
    for (stage, acts) in [
        (Stage::Done(Direction::Forward), "look, delete step and run rolling"),
        (
            Stage::Starting(Direction::Forward),
            "switch new, start, ready, look, note done forward, look, delete step and run rolling",
        ),
    ] {
        let mut driven = Driven::new(keys(RunState::Rolling), "1! 2! 3!");
        driven.keys.step = Some(record(1, 1, ATTEMPT));
        assert_eq!(driven.start(Some(in_hand(stage))), acts, "{stage:?}");
    }
}

/// A pause outlasts a step that fails meanwhile.
#[test]
fn a_failed_step_leaves_a_paused_run_paused() {
    let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3*");
    driven.keys.run.as_mut().unwrap().value.pause = Some(pause());
    driven.keys.step = Some(record(1, 1, ATTEMPT));
    let acts = driven.start(Some(in_hand(Stage::Done(Direction::Back))));
    assert_eq!(acts, "look, delete step and run failed, paused");
}

/// A pause that comes before the stop undoes the step; one that comes after it lets it end.
#[test]
fn a_pause_between_the_record_and_the_stop_keeps_the_member_up() {
    let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3*");
    assert_eq!(driven.start(None), "prepare, look, register, look, take baton");
    driven.keys.baton = Some(baton(1, 1));
    let created = driven.keys.baton.as_ref().unwrap().created;
    assert_eq!(driven.then(Event::Yes(created)), "look, hook, note planned step, look, put step");
    driven.keys.run.as_mut().unwrap().value.pause = Some(pause());
    let acts = driven.then(Event::Yes(Revision(9)));
    assert!(acts.starts_with("note stopping forward, look, ") && !acts.contains("stop,"), "{acts}");
}

/// It runs what it ran before: going back would only stop it once more, and its next run would restart it again.
#[test]
fn a_restart_that_changes_no_file_is_started_again_and_done_once_it_is_ready() {
    let starting = Some(in_hand(Stage::Starting(Direction::Forward)));
    let mut driven = Driven::new(keys(RunState::Rolling), "1- 2+ 3*").on_failure(OnFailure::StartAgain);
    driven.keys.step = Some(record(1, 1, ATTEMPT));
    let acts = "switch new, start, ready, look, start, ready, look, run failed";
    assert_eq!(driven.start(starting), acts);
    driven.keys.run = keys(RunState::Failed { member: MemberId(1), why: "".into(), was: Going::Rolling }).run;
    assert_eq!(driven.then(Event::Yes(Revision(9))), "end Step");

    let mut repaired = Driven::new(driven.keys.clone(), "1+ 2+ 3*").on_failure(OnFailure::StartAgain);
    let acts = "switch new, start, ready, look, note done forward, look, delete step and run rolling";
    assert_eq!(repaired.start(starting), acts);
}

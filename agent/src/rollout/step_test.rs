use std::{collections::BTreeMap, sync::Arc};

use proto::{MemberId, Revision};

use crate::{
    journal::progress::{Binary, InHand, Leg, Stage, Step},
    observe::view::ClusterView,
    plan::samples,
    rollout::{
        act::{Act, Event, Looked},
        agent::Agent,
        driven::{ATTEMPT, Driven, baton, in_hand, keys, record},
        keys::{At, AttemptId, Keys, ProcessId, Run, RunId, RunState, TakeDown},
        rules::Rules,
    },
};

const PROCESS: ProcessId = ProcessId { boot_id: 1, pid: 2, start_time: 3 };

fn at<T>(value: T) -> At<T> {
    At { created: Revision(3), modified: Revision(3), value }
}

fn looked(view: ClusterView, keys: Keys) -> Event {
    let (down, gone) = (Vec::new(), Vec::new());
    let (keys, view) = (Some(keys), Some(view));
    Event::Looked(Box::new(Looked { keys, view, down, gathered: true, lease_is_fresh: true, gone, fresh: 7 }))
}

/// Whatever comes after a mended step, such as the host's other member, needs a host that was found fit.
#[test]
fn after_a_mended_step_the_host_is_prepared_before_anything_else() {
    let me = Arc::new(samples::me(&[1, 2]));
    let step = Step { member: MemberId(1), attempt: ATTEMPT, leg: Leg::Forward };
    let record = TakeDown {
        member: MemberId(1),
        host: me.host,
        host_name: me.host_name.clone(),
        attempt: ATTEMPT,
        process: PROCESS,
        back: false,
    };
    let state = RunState::Rolling;
    let run = Run { id: RunId(1), intent: me.intent.clone(), state, changes_minor: true, done: Vec::new() };
    let keys = Keys { run: Some(at(run)), down: Some(at(record)), agents: BTreeMap::new(), ..Keys::default() };
    let mut view = samples::view("1+ 2+ 3+");
    samples::with_release(&mut view, 0, "3.5.30");

    let mut agent = Agent::new(me, Rules::default(), PROCESS);
    let in_hand = Some(InHand { step, stage: Stage::Starting(Leg::Forward) });
    let mut act = agent.on(Event::Started { in_hand, down: Vec::new() });
    for _ in 0..20 {
        act = match act {
            Some(Act::HookAfter(_)) => break,
            Some(Act::Look) => agent.on(looked(view.clone(), keys.clone())),
            Some(Act::Send(_)) => agent.on(Event::Yes(Revision(4))),
            Some(_) => agent.on(Event::Done),
            None => panic!("an answer that was not asked for"),
        };
    }
    assert_eq!(act, Some(Act::HookAfter(MemberId(1))));
    assert_eq!(agent.on(Event::Done), Some(Act::Prepare));
}

/// A member that does not end in time may end later, when nobody looks any more.
#[test]
fn a_member_that_does_not_end_is_started_again_if_it_has() {
    let mut driven = Driven::new(keys(RunState::Rolling), "1+ 2+ 3*");
    driven.start(None);
    driven.keys.baton = Some(baton(1, 1));
    driven.then(Event::Yes(Revision(5)));
    let Some(in_hand) = driven.agent.in_hand() else { panic!("a step is in hand") };
    driven.keys.down = Some(record(1, 1, in_hand.step.attempt));
    let created = driven.keys.down.as_ref().map(|down| down.created).unwrap();
    driven.fails = |act| matches!(act, Act::Stop(_));
    let acts = "note stopping forward, look, stop, start, ready, look, delete down and run failed";
    assert_eq!(driven.then(Event::Yes(created)), acts);
}

/// There is nothing else to start, and nobody may be told that the old one runs.
#[test]
fn a_new_binary_that_failed_is_started_again_if_the_old_one_cannot_be_put_back() {
    let mut driven = Driven::new(keys(RunState::Rolling), "1. 2+ 3*");
    driven.keys.down = Some(record(1, 1, ATTEMPT));
    (2..=3).for_each(|at| samples::with_cluster_version(&mut driven.view, at - 1, "3.4"));
    driven.fails = |act| matches!(act, Act::Switch { to: Binary::Old, .. });
    let acts = "switch new, start, ready, look, note stopping back, stop, let polls end, look, switch old, \
        switch new, note starting forward, start, ready, look, run failed";
    assert_eq!(driven.start(Some(in_hand(Stage::Starting(Leg::Forward)))), acts);
}

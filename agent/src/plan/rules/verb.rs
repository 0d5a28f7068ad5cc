//! What the operator typed, held against the state of the run: when `rollback`, `finalize` and `resume`
//! change it, and when `run` must not. Source: agent/PROTOCOL.md, R-8 to R-10.

use super::turn::turn;
use crate::{
    journal::restart::Direction,
    keys::{Run, RunResult, RunState},
    observe::view::Member,
    plan::{Case, Finish, Next, Verb, no_return, order, refusal::Refusal, target},
};

pub(super) fn verb(case: &Case) -> Option<Next> {
    match case.me.verb {
        Verb::Rollback => rollback(case),
        Verb::Finalize => opposed(case).or_else(|| finalize(case)),
        Verb::Resume => resume(case).or_else(|| opposed(case)),
        Verb::Run => opposed(case),
        // It is no part of the run.
        Verb::Guard(_) => None,
    }
}

fn opposed(case: &Case) -> Option<Next> {
    let run = case.current_run()?;
    let turns = turn(case).is_some();
    (opposes(case.me.verb, run) && !turns).then_some(Next::Refuse(Refusal::GoingBack))
}

fn rollback(case: &Case) -> Option<Next> {
    let Some(run) = case.current_run() else { return Some(rolled_back_before(case)) };
    if let Some(refusal) = case.kind().refuses(Verb::Rollback) {
        return Some(Next::Refuse(refusal));
    }
    if run.is_going_back() {
        return None;
    }
    if no_return::has_no_way_back(case, None) {
        return Some(unseen_old_voter(case).unwrap_or(Next::Refuse(Refusal::NoWayBack)));
    }
    Some(Next::Move { to: RunState::RollingBack, at_rest: true })
}

/// A voter that would keep the way back open if it answered: until it does nobody knows.
fn unseen_old_voter(case: &Case) -> Option<Next> {
    let is_unseen = |member: &&Member| member.report().is_none() && !target::is_on_new_minor(case, member);
    case.view.voters().find(is_unseen).map(|member| order::another_is_sick(case, member.id))
}

/// The same command typed again, after it has done its work.
fn rolled_back_before(case: &Case) -> Next {
    let last = case.keys.run.as_ref().map(|run| &run.value);
    let is_this =
        |run: &&Run| *run.intent == *case.me.intent && run.state == RunState::Done { result: RunResult::RolledBack };
    let is_back = |member: &Member| member.is_ready() && target::is_at(case, member, Direction::Back);
    match last.filter(is_this).is_some() && target::seated(case).all(is_back) {
        true => Next::Finish(Finish::Done(RunResult::RolledBack)),
        false => Next::Refuse(Refusal::NothingToRollBack),
    }
}

fn finalize(case: &Case) -> Option<Next> {
    let left: Vec<_> = case.undone().map(|member| member.id).collect();
    if !case.changes_minor() && left.is_empty() {
        return Some(Next::Finish(Finish::NothingToDo));
    }
    if !case.changes_minor() {
        return Some(Next::Refuse(Refusal::NotHeld));
    }
    let is_last = case.old().count() == 1;
    let is_paused = case.current_run().is_some_and(|run| run.pause.is_some());
    match case.current_run().map(|run| &run.state) {
        Some(RunState::Held { .. } | RunState::Rolling) if is_last => {
            Some(Next::Move { to: RunState::Approved, at_rest: true })
        }
        // While it is paused that is said, and waited for.
        Some(RunState::Approved) if !is_paused && left.iter().any(|member| !case.me.seats.has(*member)) => {
            Some(Next::Finish(Finish::Approved { left }))
        }
        Some(RunState::Approved | RunState::Failed { .. }) => None,
        _ if left.is_empty() => None,
        _ => Some(Next::Refuse(Refusal::NotHeld)),
    }
}

/// Begins no run: whoever types it looks for one that has failed, and may be on the wrong cluster.
fn resume(case: &Case) -> Option<Next> {
    match case.current_run().map(|run| &run.state) {
        Some(RunState::Failed { was, .. }) if case.may_resume => Some(Next::Move { to: (*was).into(), at_rest: true }),
        None if case.undone().next().is_some() => Some(Next::Refuse(Refusal::NothingToResume)),
        _ => None,
    }
}

/// Whether this verb would take the run the other way than it goes, marked or not.
fn opposes(verb: Verb, run: &Run) -> bool {
    run.is_going_back() && verb != Verb::Rollback
}

#[cfg(test)]
mod tests {
    use proto::{MemberId, Revision};

    use super::*;
    use crate::{
        keys::{At, Going, Keys, Run, RunId, rules::Rules},
        plan::{Me, next, refusal::Wait, samples},
        unknown::Unknown,
    };

    #[test]
    fn nothing_goes_forward_while_the_run_goes_back() {
        let failed = RunState::Failed { member: MemberId(2), why: "it".into(), was: Going::RollingBack };
        for (verb, state, refused) in [
            (Verb::Run, RunState::RollingBack, true),
            (Verb::Finalize, RunState::RollingBack, true), // it is more than not held
            (Verb::Resume, RunState::RollingBack, true),
            (Verb::Rollback, RunState::RollingBack, false),
            (Verb::Run, failed.clone(), true),
            (Verb::Finalize, failed.clone(), true),
            (Verb::Resume, failed, false), // it lifts the mark, and no more
            (Verb::Run, RunState::Rolling, false),
        ] {
            let me = Me { verb, ..samples::me(&[1]) };
            let run = Run {
                id: RunId(1),
                intent: me.intent.clone(),
                state,
                changes_minor: true,
                done: Vec::new(),
                begun_by: None,
                membership: None,
                backup: None,
                pause: None,
                unknown: Unknown::default(),
            };
            let text = format!("{verb:?} {:?}", run.state);
            let at = Some(At { created: Revision(3), modified: Revision(3), value: run });
            let keys = Keys { run: at, ..Keys::default() };
            let mut view = samples::view("1+ 2+ 3+");
            samples::with_release(&mut view, 0, "3.5.30");
            let (me, rules, keys, view) = (&me, &Rules::default(), &keys, &view);
            let case = samples::case(me, rules, keys, view);
            assert_eq!(next(&case) == Next::Refuse(Refusal::GoingBack), refused, "{text}");
        }
    }

    #[test]
    fn a_run_that_does_not_stand_is_not_resumed() {
        let me = Me { verb: Verb::Resume, ..samples::me(&[1]) };
        for (release, expected) in [("3.4.23", Some(Next::Refuse(Refusal::NothingToResume))), ("3.5.30", None)] {
            let mut view = samples::view("1+ 2+ 3+");
            (0..3).for_each(|at| samples::with_release(&mut view, at, release));
            let (rules, keys) = (Rules::default(), Keys::default());
            let case = samples::case(&me, &rules, &keys, &view);
            assert_eq!(resume(&case), expected, "{release}");
        }
    }

    #[test]
    fn whether_there_is_a_way_back_is_not_known_while_the_last_old_voter_is_silent() {
        let silent = Next::Refuse(Refusal::NotReady { member: MemberId(3) });
        for (members, done, expected) in [
            ("1+ 2+ 3.", vec![], silent),
            ("1+ 2+ 3.", vec![MemberId(3)], Next::Refuse(Refusal::NoWayBack)), // its own agent took it there
            ("1+ 2+ 3+", vec![], Next::Refuse(Refusal::NoWayBack)),
            ("1+ 2+ 3.", vec![], Next::Wait(Wait::Ready { member: MemberId(3) })), // its agent is at work
        ] {
            let mut me = Me { verb: Verb::Rollback, ..samples::me(&[1]) };
            if matches!(expected, Next::Wait(_)) {
                me.seats = samples::seats(me.host, &[1, 3]);
            }
            let run = Run { done, ..samples::run(RunState::Rolling) };
            let at = Some(At { created: Revision(3), modified: Revision(3), value: run });
            let keys = Keys { run: at, ..Keys::default() };
            let mut view = samples::view(members);
            (0..3).for_each(|at| samples::with_release(&mut view, at, "3.5.30"));
            let (me, rules, keys, view) = (&me, &Rules::default(), &keys, &view);
            let case = samples::case(me, rules, keys, view);
            assert_eq!(rollback(&case), Some(expected), "{members}");
        }
    }
}

//! Rules about what the hosts share: whose run it is, whose record stands, what was lost, what failed.
//!
//! Each answers `None` where it has nothing to say. Source: ARCHITECTURE.md, R-1, R-7, R-8.

use proto::MemberId;

use super::{
    Case, Next, Verb,
    refusal::{Difference, Refusal, Wait},
    skew, target,
};
use crate::{
    journal::progress::Leg,
    observe::view::Member,
    rollout::{
        keys::{At, Finalize, Intent, Run, RunState, TakeDown},
        txn::Txn,
    },
};

pub(super) fn ownership(case: &Case) -> Option<Next> {
    let owns_any = case.me.owns.iter().any(|own| case.view.member(*own).is_some());
    (!owns_any).then_some(Next::Refuse(Refusal::OwnsNothing))
}

/// What has no lease is nobody's, and would stand for ever: it goes before anything is planned.
pub(super) fn stale(case: &Case) -> Option<Next> {
    let stale = case.keys.stale.first().filter(|_| case.in_hand.is_none())?;
    Some(Next::Tidy(Txn::clear_stale(*stale)))
}

pub(super) fn other_run(case: &Case) -> Option<Next> {
    let run = case.standing()?;
    if *run.intent != *case.me.intent {
        return Some(Next::Refuse(Refusal::OtherRun {
            differs: differences(&run.intent, &case.me.intent),
            begun_by: run.begun_by.clone(),
        }));
    }
    (run.state == RunState::Paused).then_some(Next::Refuse(Refusal::Paused))
}

/// The parts in which the intent that stands and the one wanted differ.
pub(super) fn differences(standing: &Intent, wanted: &Intent) -> Vec<Difference> {
    let mut differs = Vec::new();
    let mut add = |part, standing: String, wanted: String| {
        if standing != wanted {
            differs.push(Difference { part, standing, wanted });
        }
    };
    add("cluster", standing.cluster.to_string(), wanted.cluster.to_string());
    let (a, b) = (standing.change.kind(), wanted.change.kind());
    match std::mem::discriminant(&standing.change) == std::mem::discriminant(&wanted.change) {
        true => a.parts().into_iter().zip(b.parts()).for_each(|((part, a), (_, b))| add(part, a, b)),
        false => add("kind", a.phrase(), b.phrase()),
    }
    add("gates.expect", gates(standing), gates(wanted));
    add("strategy.finalize", finalize(standing).into(), finalize(wanted).into());
    differs
}

fn gates(intent: &Intent) -> String {
    match intent.gates.is_empty() {
        true => "none".to_owned(),
        false => intent.gates.iter().map(|(gate, is_on)| format!("{gate}={is_on}")).collect::<Vec<_>>().join(" "),
    }
}

fn finalize(intent: &Intent) -> &'static str {
    match intent.finalize {
        Finalize::Auto => "auto",
        Finalize::Manual => "manual",
    }
}

pub(super) fn versions(case: &Case) -> Option<Next> {
    match skew::skew(&case.me.intent, case.view)? {
        Refusal::NoLeader => Some(without_leader(case)),
        refusal => Some(Next::Refuse(refusal)),
    }
}

/// The way back needs nothing of the kind.
pub(super) fn hindrance(case: &Case) -> Option<Next> {
    let is_back = case.me.verb == Verb::Rollback || case.leg() == Leg::Back;
    case.kind().hindrance(case.view).filter(|_| !is_back).map(Next::Refuse)
}

/// Where downtime is allowed, two voters have no leader while one of them is down, and its host may have put the
/// record of that after the keys were read.
fn without_leader(case: &Case) -> Next {
    let is_awaited = |member: &&Member| {
        !member.is_ready() && !case.me.owns.contains(&member.id) && case.keys.has_participant(member.id)
    };
    let is_expected = case.me.allow_downtime && case.view.voters().count() <= 2;
    match case.view.voters().find(is_awaited).filter(|_| is_expected) {
        Some(member) => Next::Wait(Wait::Ready { member: member.id }),
        None => Next::Refuse(Refusal::NoLeader),
    }
}

pub(super) fn record(case: &Case) -> Option<Next> {
    let record = case.keys.down.as_ref()?;
    let TakeDown { member, host, attempt, .. } = record.value;
    if case.in_hand == Some(attempt) {
        return None;
    }
    if is_removed(case, member) {
        return Some(Next::Tidy(Txn::delete_down(record.created)));
    }
    match whose(case, &record.value) {
        Whose::Mine => Some(Next::Adopt(member)),
        Whose::MinePerhaps => Some(refuse_record(record, case)),
        Whose::Anothers if case.rules.record_is_the_lock => {
            Some(failed_and_left(case, member).unwrap_or(Next::Wait(Wait::Record { member, host })))
        }
        Whose::Anothers => None,
    }
}

/// A step that failed and kept its record, and whose agent has ended: nobody will bring that member back by
/// itself, so waiting is over with the mark's reason.
fn failed_and_left(case: &Case, member: MemberId) -> Option<Next> {
    let RunState::Failed { member: marked, why, .. } = &case.standing()?.state else { return None };
    let is_left = *marked == member && !case.keys.has_participant(member) && case.gathered();
    is_left.then(|| Next::Refuse(Refusal::Failed { member, why: why.clone() }))
}

/// Whether a majority says that this member was removed. Where this host has all voters there is nobody else to ask.
fn is_removed(case: &Case, member: MemberId) -> bool {
    let is_all_mine = || case.view.voters().all(|voter| voter.is_ready() && case.me.owns.contains(&voter.id));
    let is_gone = case.view.leader().is_some() && case.view.member(member).is_none();
    is_gone && (case.view.removed_by(member, None).is_some() || is_all_mine())
}

enum Whose {
    /// This host's, and the agent that put it is gone.
    Mine,
    /// Of a member of this host, put by an agent that may still live.
    MinePerhaps,
    Anothers,
}

/// A record is this host's own where its process is gone, and its member runs here; what bears this host's id and has a
/// process at work was refused before.
fn whose(case: &Case, record: &TakeDown) -> Whose {
    let is_gone = case.process == record.process || case.gone.contains(&record.process);
    let owns = case.me.owns.contains(&record.member);
    match record.host == case.me.host {
        true if !case.rules.twins_are_refused => Whose::Mine,
        _ if owns && is_gone => Whose::Mine,
        _ if owns => Whose::MinePerhaps,
        _ => Whose::Anothers,
    }
}

fn refuse_record(record: &At<TakeDown>, case: &Case) -> Next {
    let alive = record.value.host.machine.is_some() && record.value.host.machine == case.me.host.machine;
    Next::Refuse(Refusal::RecordOfAnother { record: record.value.clone(), alive })
}

pub(super) fn lost(case: &Case) -> Option<Next> {
    case.keys.lost.iter().find_map(|(member, lost)| {
        if is_removed(case, *member) {
            return Some(Next::Tidy(Txn::clear_lost(*member, lost.created)));
        }
        match whose(case, &lost.value) {
            // My own step, still in hand though it was given up: nobody else goes while the sign stands.
            Whose::Mine if case.in_hand == Some(lost.value.attempt) => None,
            Whose::Mine if case.view.is_ready(*member) => Some(Next::Tidy(Txn::clear_lost(*member, lost.created))),
            Whose::Mine => Some(Next::Wait(Wait::Ready { member: *member })),
            Whose::MinePerhaps => Some(refuse_record(lost, case)),
            Whose::Anothers if case.keys.has_participant(*member) || !case.gathered() => {
                Some(Next::Wait(Wait::LostOwner { member: *member }))
            }
            Whose::Anothers => Some(Next::Refuse(Refusal::Lost { record: lost.value.clone() })),
        }
    })
}

pub(super) fn mark(case: &Case) -> Option<Next> {
    let RunState::Failed { member, why, was } = &case.standing()?.state else { return None };
    if is_owner(case, *member) {
        let done = case.view.member(*member).is_none_or(|m| m.is_ready() && target::is_at(case, m, case.leg()));
        return done.then(|| Next::Move { to: (*was).into(), at_rest: false });
    }
    if !case.rules.owner_lifts_the_mark {
        return Some(Next::Move { to: (*was).into(), at_rest: false });
    }
    if is_removed(case, *member) {
        return Some(Next::Move { to: (*was).into(), at_rest: true });
    }
    if case.keys.has_participant(*member) || !case.gathered() {
        return Some(Next::Wait(Wait::FailedOwner { member: *member }));
    }
    Some(Next::Refuse(Refusal::Failed { member: *member, why: why.clone() }))
}

fn is_owner(case: &Case, member: MemberId) -> bool {
    case.me.owns.contains(&member)
}

/// The member whose failed step is this host's own to try again; no other may go under its mark.
pub(super) fn only(case: &Case) -> Option<MemberId> {
    match case.standing()?.state {
        RunState::Failed { member, .. } if is_owner(case, member) => Some(member),
        _ => None,
    }
}

/// Whether this verb would take the run the other way than it goes, marked or not.
pub(super) fn opposes(verb: Verb, run: &Run) -> bool {
    run.is_going_back() && verb != Verb::Rollback
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::Revision;

    use super::*;
    use crate::{
        observe::view::{ClusterView, Leader},
        plan::{Me, next, samples},
        rollout::{
            host_id::HostId,
            keys::{AttemptId, Going, Keys, Participant, ProcessId, RunId},
            rules::Rules,
        },
        unknown::Unknown,
    };

    fn at<T>(value: T) -> At<T> {
        At { created: Revision(3), modified: Revision(3), value }
    }

    fn host(member: u64) -> HostId {
        HostId { machine: None, instance: u128::from(member) }
    }

    /// Member 2's record, put by an agent of host 2.
    fn record() -> TakeDown {
        let process = ProcessId { boot_id: 1, pid_namespace: 1, pid: 2, start_time: 3 };
        let (member, attempt) = (MemberId(2), AttemptId(9));
        TakeDown {
            member,
            host: host(2),
            host_name: Arc::from("h2"),
            attempt,
            process,
            back: false,
            unknown: Unknown::default(),
        }
    }

    fn keys(failed: Option<u64>, is_owner_there: bool) -> Keys {
        let intent = samples::me(&[1]).intent;
        let state = match failed {
            Some(member) => RunState::Failed { member: MemberId(member), why: Arc::from("it"), was: Going::Rolling },
            None => RunState::Rolling,
        };
        let mut keys = Keys {
            run: Some(at(Run {
                id: RunId(1),
                intent,
                state,
                changes_minor: true,
                done: Vec::new(),
                begun_by: None,
                unknown: Unknown::default(),
            })),
            down: Some(at(record())),
            ..Keys::default()
        };
        if is_owner_there {
            let owns = vec![MemberId(2)];
            let owner = Participant {
                host_name: Arc::from("h2"),
                process: ProcessId::default(),
                owns,
                done: Vec::new(),
                waits_for: None,
                unknown: Unknown::default(),
            };
            keys.agents.insert(host(2), at(owner));
        }
        keys
    }

    #[test]
    fn anothers_record_is_waited_for_unless_its_agent_failed_and_ended() {
        for (failed, is_owner_there, gathered, ends) in [
            (None, true, true, false),
            (None, false, true, false), // it was killed, and the same command brings it back
            (Some(2), true, true, false),
            (Some(2), false, false, false),
            (Some(2), false, true, true),
            (Some(3), false, true, false), // the mark is another member's
        ] {
            let (me, rules, keys) = (samples::me(&[1]), Rules::default(), keys(failed, is_owner_there));
            let view = samples::view("1+ 2- 3+");
            let (me, rules, keys, view) = (&me, &rules, &keys, &view);
            let found = next(&Case {
                me,
                rules,
                keys,
                view,
                gathered,
                joined: None,
                in_hand: None,
                gone: &[],
                process: Default::default(),
            });
            let expected = match ends {
                true => Next::Refuse(Refusal::Failed { member: MemberId(2), why: Arc::from("it") }),
                false => Next::Wait(Wait::Record { member: MemberId(2), host: host(2) }),
            };
            assert_eq!(found, expected, "{failed:?} {is_owner_there} {gathered}");
        }
    }

    #[test]
    fn two_voters_without_a_leader_are_waited_for_where_one_goes_down_with_leave() {
        for (view, allow_downtime, is_owner_there, waits) in [
            ("1+ 2.", true, true, true),
            ("1- 2.", true, true, true), // without the other it answers no read
            ("1+ 2.", true, false, false),
            ("1+ 2.", false, true, false),
            ("1+ 2. 3.", true, true, false), // three never go below their quorum
            ("1- 2+", true, true, false),    // this host's own is nobody else's to wait for
        ] {
            let me = Me { allow_downtime, ..samples::me(&[1]) };
            let keys = Keys { down: None, ..keys(None, is_owner_there) };
            let view_of = ClusterView { leader: Leader::Unknown, ..samples::view(view) };
            let (me, rules, keys, of) = (&me, &Rules::default(), &keys, &view_of);
            let case = Case {
                me,
                rules,
                keys,
                view: of,
                gathered: true,
                joined: None,
                in_hand: None,
                gone: &[],
                process: Default::default(),
            };
            let expected = match waits {
                true => Next::Wait(Wait::Ready { member: MemberId(2) }),
                false => Next::Refuse(Refusal::NoLeader),
            };
            assert_eq!(next(&case), expected, "{view} {allow_downtime} {is_owner_there}");
        }
    }
}

//! Whether a command may run that may take all of this host's members down, such as a reboot.
//!
//! The same rules let it go that let a member be restarted, but for those of a run: a guard is part of none. Source:
//! agent/PROTOCOL.md, I-2, R-1, R-7.

use std::sync::Arc;

use proto::MemberId;

use super::{
    Case, Finish, Guard as Asked, Next,
    action::{Action, Guard},
    order,
    refusal::{Refusal, Wait},
    rules::{self, quorum},
};
use crate::{
    keys::{Run, RunState, change::Change},
    observe::view::ClusterView,
};

pub(super) fn next(case: &Case, asked: Asked) -> Next {
    let before = rules::before_a_guard(case);
    match (asked, before) {
        (Asked::Finish, before) => before.filter(is_own).unwrap_or(Next::Finish(Finish::NothingToDo)),
        (Asked::Command | Asked::Check, Some(next)) => next,
        (Asked::Command | Asked::Check, None) => {
            let next = run_in_hand(case).or_else(|| rules::alarm(case)).or_else(|| busy(case)).or_else(|| quorum(case));
            next.unwrap_or_else(|| go(case))
        }
    }
}

/// Whoever only ends a step takes nothing down: what stands of another host is none of theirs.
fn is_own(next: &Next) -> bool {
    match next {
        Next::Wait(wait) => !matches!(wait, Wait::Record { .. } | Wait::AbandonedStep { .. }),
        Next::Refuse(refusal) => {
            !matches!(refusal, Refusal::Alarm { .. } | Refusal::Failed { .. } | Refusal::Abandoned { .. })
        }
        _ => true,
    }
}

/// A run has the cluster for as long as an agent is at work on it. One that failed has a member to be seen to first.
fn run_in_hand(case: &Case) -> Option<Next> {
    if let RunState::Failed { member, why, .. } = &case.current_run()?.state {
        return Some(Next::Refuse(Refusal::Failed { member: *member, why: why.clone() }));
    }
    let seats = coming_or_going(case.current_run()?, case.view);
    if !seats.is_empty() {
        return Some(Next::Wait(Wait::Seats { seats }));
    }
    // Its agents wait, and hold nothing.
    if case.current_run()?.pause.is_some() {
        return None;
    }
    // So does one outside its host's window.
    let at_work = case.keys.agents.values().filter(|agent| !agent.value.is_closed);
    let members: Vec<_> = at_work.flat_map(|agent| agent.value.seats.members()).collect();
    (!members.is_empty()).then_some(Next::Wait(Wait::Others { members }))
}

/// Newcomers, and whoever is replaced by one that votes: it goes next, with nothing in between.
fn coming_or_going(run: &Run, view: &ClusterView) -> Vec<Arc<str>> {
    let Some(membership) = &run.membership else { return Vec::new() };
    let joins = membership.joins.iter().map(|join| join.seat.clone());
    let is_replaced = match &run.intent.change {
        Change::Replace(replace) => view.voters().any(|voter| voter.name == replace.by && replace.by != replace.member),
        _ => false,
    };
    let leavers = membership.leaving.iter().filter(|_| is_replaced).filter_map(|member| view.member(*member));
    joins.chain(leavers.map(|leaver| leaver.name.clone())).collect()
}

fn busy(case: &Case) -> Option<Next> {
    let mut own = own(case).into_iter().filter_map(|member| case.view.member(member));
    own.find_map(|member| rules::busy(case, member))
}

fn quorum(case: &Case) -> Option<Next> {
    let own = own(case);
    let lost = if case.rules.guard_counts_the_host { &own[..] } else { &own[..own.len().min(1)] };
    match quorum::objection_to_all(case.me, case.view, lost)? {
        quorum::Objection::Below(refusal) => Some(Next::Refuse(refusal)),
        // Who is not at work on it by now is not waited for: a guard has no time in which others are to come.
        quorum::Objection::AnotherIsSick(other) => {
            Some(order::another_is_sick(&Case { is_window_over: true, ..*case }, other))
        }
    }
}

/// This host's members that the cluster has, in order of id.
fn own(case: &Case) -> Vec<MemberId> {
    let mut own: Vec<_> = case.me.seats.members().filter(|member| case.view.member(*member).is_some()).collect();
    own.sort();
    own
}

fn go(case: &Case) -> Next {
    let own = own(case);
    let Some(member) = own.first().copied() else { return Next::Refuse(Refusal::OwnsNothing) };
    let leader = own.iter().copied().find(|member| case.view.is_leader(*member));
    let ready = case.view.voters().filter(|voter| voter.is_ready() && !own.contains(&voter.id));
    let hand_over = match (leader, ready.map(|voter| voter.id).min()) {
        (Some(from), Some(to)) => Some((from, to)),
        _ => None,
    };
    Next::Step(Action::Guard(Guard { member, hand_over }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keys::{Going, Intent, Keys, change::Replace, membership::Membership, rules::Rules},
        plan::{Me, Verb, next, samples},
    };

    fn me(owns: &[u64]) -> Me {
        Me { verb: Verb::Guard(Asked::Command), ..samples::me(owns) }
    }

    fn goes(member: u64, hand_over: Option<(u64, u64)>) -> Next {
        let hand_over = hand_over.map(|(from, to)| (MemberId(from), MemberId(to)));
        Next::Step(Action::Guard(Guard { member: MemberId(member), hand_over }))
    }

    fn below(standing: usize, needed: usize) -> Next {
        Next::Refuse(Refusal::BelowQuorum { down: MemberId(1), standing, needed })
    }

    #[test]
    fn all_members_of_the_host_count_as_lost() {
        let sick = |member| Next::Refuse(Refusal::NotReady { member: MemberId(member) });
        for (members, own, expected) in [
            ("1+ 2+ 3*", &[1][..], goes(1, None)),
            ("1* 2+ 3+", &[1], goes(1, Some((1, 2)))),
            ("1+ 2* 3+ 4+ 5+", &[1, 2], goes(1, Some((2, 3)))),
            ("1+ 2+ 3*", &[1, 2], below(1, 2)),
            ("1+ 2+ 3+ 4+ 5*", &[1, 2, 3], below(2, 3)),
            ("1+ 2. 3*", &[1], sick(2)),       // it is seen to first
            ("1- 2+ 3*", &[1], goes(1, None)), // a reboot may be what it needs
            ("1. 2+ 3*", &[1], goes(1, None)),
            ("1+ 2+ 3* 4l", &[4], goes(4, None)),
            ("1+ 2*", &[1], below(1, 2)),
            ("1*", &[1], below(0, 1)),
        ] {
            let (me, rules, keys) = (me(own), Rules::default(), Keys::default());
            let view = samples::view(members);
            assert_eq!(next(&samples::case(&me, &rules, &keys, &view)), expected, "{members} without {own:?}");
        }
    }

    #[test]
    fn downtime_of_one_or_two_voters_is_for_a_person_to_allow() {
        for (members, expected) in [("1+ 2*", goes(1, None)), ("1*", goes(1, None)), ("1* 2+", goes(1, Some((1, 2))))] {
            let (me, rules, keys) = (Me { allow_downtime: true, ..me(&[1]) }, Rules::default(), Keys::default());
            let view = samples::view(members);
            assert_eq!(next(&samples::case(&me, &rules, &keys, &view)), expected, "{members}");
        }
    }

    #[test]
    fn a_run_that_somebody_works_on_is_waited_for_and_one_that_failed_is_not() {
        let failed = RunState::Failed { member: MemberId(2), why: Arc::from("it"), was: Going::Rolling };
        let refused = Next::Refuse(Refusal::Failed { member: MemberId(2), why: Arc::from("it") });
        for (state, has_agent, expected) in [
            (RunState::Rolling, true, Next::Wait(Wait::Others { members: vec![MemberId(2)] })),
            (RunState::Rolling, false, goes(1, None)),
            (RunState::Held { member: MemberId(2) }, false, goes(1, None)),
            (failed, false, refused),
        ] {
            let mut keys = samples::keys(None, has_agent);
            keys.step = None;
            keys.run = Some(samples::at(samples::run(state.clone())));
            let (me, rules, view) = (me(&[1]), Rules::default(), samples::view("1+ 2+ 3*"));
            assert_eq!(next(&samples::case(&me, &rules, &keys, &view)), expected, "{state:?} {has_agent}");
        }
    }

    #[test]
    fn anothers_step_is_waited_for_but_not_to_end_ones_own() {
        let keys = Keys { run: None, ..samples::keys(None, false) };
        let (rules, view) = (Rules::default(), samples::view("1+ 2- 3*"));
        let waits = Next::Wait(Wait::Record { member: MemberId(2), host: samples::host(2) });
        for (asked, expected) in
            [(Asked::Command, waits.clone()), (Asked::Check, waits), (Asked::Finish, Next::Finish(Finish::NothingToDo))]
        {
            let me = Me { verb: Verb::Guard(asked), ..me(&[1]) };
            assert_eq!(next(&samples::case(&me, &rules, &keys, &view)), expected, "{asked:?}");
        }
    }

    #[test]
    fn whoever_was_replaced_goes_before_a_host_does() {
        for (members, expected) in [
            ("1+ 2+ 3* 4+", Next::Wait(Wait::Seats { seats: vec!["1".into()] })),
            ("1+ 2+ 3*", goes(2, None)), // nobody has come yet, and nobody is at work on it
            ("2+ 3* 4+", goes(2, None)),
        ] {
            let me = me(&[2]);
            let change = Change::Replace(Replace { member: "1".into(), by: "4".into() });
            let intent = Arc::new(Intent { change, ..(*me.intent).clone() });
            let membership = Membership { leaving: vec![MemberId(1)], ..Membership::default() };
            let run = Run { intent, ..samples::run(RunState::Rolling) }.with_membership(membership);
            let keys = Keys { run: Some(samples::at(run)), ..Keys::default() };
            let (rules, view) = (Rules::default(), samples::view(members));
            assert_eq!(next(&samples::case(&me, &rules, &keys, &view)), expected, "{members}");
        }
    }

    #[test]
    fn a_sick_member_is_not_waited_for_to_join() {
        let (me, rules, keys) = (me(&[1]), Rules::default(), Keys::default());
        let view = samples::view("1+ 2. 3*");
        let case = Case { is_window_over: false, ..samples::case(&me, &rules, &keys, &view) };
        assert_eq!(next(&case), Next::Refuse(Refusal::NotReady { member: MemberId(2) }));
    }
}

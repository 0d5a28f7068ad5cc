//! Who goes when: members that are not ready, then learners, then followers, the leader last; and when a
//! host waits for another, or ends its part.
//!
//! Source: agent/PROTOCOL.md, "Who goes when".

use proto::MemberId;

use super::{
    Case, Finish, Next,
    action::{Action, Restart},
    refusal::{Refusal, Wait},
    rules::{self, failed},
    target,
};
use crate::{
    journal::restart::Direction,
    observe::view::{ClusterView, Member, Role},
};

/// What a member is in the cluster when its turn comes; in the order of going, first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    NotReady,
    Learner,
    Follower,
    Leader,
}

pub(crate) fn rank(view: &ClusterView, member: &Member) -> Rank {
    match member.role {
        _ if !member.is_ready() => Rank::NotReady,
        Role::Learner => Rank::Learner,
        Role::Voter if view.is_leader(member.id) => Rank::Leader,
        Role::Voter => Rank::Follower,
    }
}

pub(super) fn order(case: &Case) -> Next {
    let is_mine = |member: &&Member| case.me.seats.has(member.id);
    let may_be_picked = |member: &&Member| failed::only(case).is_none_or(|only| only == member.id);
    let pick = case.undone().filter(is_mine).filter(may_be_picked).min_by_key(|m| (rank(case.view, m), m.id));
    match pick {
        None => my_part_is_done(case),
        Some(pick) => rules::before_a_member(case, pick).unwrap_or_else(|| go(case, pick)),
    }
}

/// My members are at their target. I wait while another one's agent is at work, and end when the members that are left have
/// none. No two wait for each other: whoever waits here has no member that anybody waits for.
fn my_part_is_done(case: &Case) -> Next {
    let is_open = |m: &&Member| !m.is_ready() || !target::is_at(case, m, case.direction());
    let (mine, others): (Vec<MemberId>, Vec<MemberId>) =
        target::seated(case).filter(is_open).map(|m| m.id).partition(|id| case.me.seats.has(*id));
    let (at_work, left): (Vec<_>, Vec<_>) = others.into_iter().partition(|member| case.keys.may_go_now(*member));
    match mine.first() {
        Some(member) => Next::Wait(Wait::Ready { member: *member }),
        None if left.is_empty() => Next::Wait(Wait::Others { members: at_work }),
        None if !case.is_window_over() => Next::Wait(Wait::OthersToJoin),
        None if at_work.is_empty() => {
            let (members, left): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|member| case.keys.has_participant(*member));
            Next::Finish(if left.is_empty() { Finish::Closed { members } } else { Finish::Partial { left } })
        }
        None => Next::Wait(Wait::Others { members: at_work }),
    }
}

pub(super) fn another_is_sick(case: &Case, other: MemberId) -> Next {
    let is_awaited = case.me.seats.has(other)
        || case.keys.has_participant(other)
        || case.view.member(other).is_some_and(Member::is_catching_up);
    match is_awaited {
        true => Next::Wait(Wait::Ready { member: other }),
        false if !case.is_window_over() => Next::Wait(Wait::OthersToJoin),
        false => Next::Refuse(Refusal::NotReady { member: other }),
    }
}

fn go(case: &Case, pick: &Member) -> Next {
    let direction = case.direction();
    let hand_over = match case.view.is_leader(pick.id) {
        false => None,
        true => match successor(case, pick.id, direction) {
            None if !case.me.allow_downtime => return Next::Refuse(no_successor(case, pick.id)),
            successor => successor,
        },
    };
    Next::Step(Action::Restart(Restart { member: pick.id, direction, hand_over }))
}

/// A ready voter to lead next: one that is done already if there is one, else one that does not go next,
/// as far as its host takes no part.
fn successor(case: &Case, leader: MemberId, direction: Direction) -> Option<MemberId> {
    let ready = case.view.voters().filter(|m| m.id != leader && m.is_ready());
    ready.min_by_key(|m| (!target::is_at(case, m, direction), case.keys.may_go_now(m.id), m.id)).map(|m| m.id)
}

fn no_successor(case: &Case, down: MemberId) -> Refusal {
    Refusal::BelowQuorum { down, standing: 0, needed: case.view.voters().count() / 2 + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keys::{Keys, Participant, ProcessId, RunState, rules::Rules},
        plan::{next, samples},
        unknown::Unknown,
    };

    /// A run in which agents are at work on the hosts of these members, each with one.
    fn with_agents_of(members: &[u64]) -> Keys {
        let mut keys = Keys { run: Some(samples::at(samples::run(RunState::Rolling))), ..Keys::default() };
        for member in members {
            let agent = Participant {
                host_name: format!("h{member}").into(),
                process: ProcessId::default(),
                seats: samples::seats(samples::host(*member), &[*member]),
                done: Vec::new(),
                waits_for: None,
                waits_since: None,
                waits_until: None,
                does: None,
                backed_up: None,
                is_closed: false,
                unknown: Unknown::default(),
            };
            keys.agents.insert(samples::host(*member), samples::at(agent));
        }
        keys
    }

    /// Who waits for its host's window is as one that comes later.
    #[test]
    fn nobody_waits_for_a_host_outside_its_window() {
        let mut view = samples::view("1* 2+ 3+");
        samples::with_release(&mut view, 2, "3.5.30");
        let (me, rules, mut keys) = (samples::me(&[1]), Rules::default(), with_agents_of(&[1, 2]));
        let waits = Next::Wait(Wait::Others { members: vec![MemberId(2)] });
        assert_eq!(next(&samples::case(&me, &rules, &keys, &view)), waits, "the leader goes last");
        keys.agents.get_mut(&samples::host(2)).unwrap().value.is_closed = true;
        let go = Restart { member: MemberId(1), direction: Direction::Forward, hand_over: Some(MemberId(3)) };
        assert_eq!(next(&samples::case(&me, &rules, &keys, &view)), Next::Step(Action::Restart(go)));
        samples::with_release(&mut view, 0, "3.5.30");
        let ends = Next::Finish(Finish::Closed { members: vec![MemberId(2)] });
        assert_eq!(next(&samples::case(&me, &rules, &keys, &view)), ends);
    }

    #[test]
    fn nobody_leaves_while_another_agent_is_at_work() {
        let waits =
            |members: &[u64]| Next::Wait(Wait::Others { members: members.iter().copied().map(MemberId).collect() });
        let ends = |left: &[u64]| Next::Finish(Finish::Partial { left: left.iter().copied().map(MemberId).collect() });
        for (members, done, agents, is_window_over, expected) in [
            // Host 1 asks, whose member is done.
            ("1+ 2+ 3+", &[1][..], &[1, 2, 3][..], true, waits(&[2, 3])),
            ("1+ 2+ 3+", &[1], &[1, 2], false, Next::Wait(Wait::OthersToJoin)),
            ("1+ 2+ 3+", &[1], &[1, 2], true, waits(&[2])), // it goes, or waits for what comes without me
            ("1+ 2+ 3+", &[1, 2], &[1, 2], true, ends(&[3])), // who only waits is not at work: both leave
            ("1+ 2- 3+", &[1, 2], &[1, 2], true, waits(&[2])), // its step has not ended yet
            ("1+ 2+ 3+", &[1], &[1], true, ends(&[2, 3])),  // one host after the other
            ("1+ 2+ 3+", &[1], &[1], false, Next::Wait(Wait::OthersToJoin)),
            ("1+ 2+ 3+ 4?", &[1], &[1, 2, 3], true, waits(&[2, 3])), // nobody comes for one that never started
            ("1+ 2+ 3+ 4?", &[1], &[1, 2], true, waits(&[2])),
            ("1+ 2+ 3+ 4?", &[1], &[1], true, ends(&[2, 3])),
            ("1+ 2+ 3+ 4?", &[1, 2, 3], &[1], true, Next::Settle),
            ("1+ 2+ 3+ 4.", &[1, 2, 3], &[1], true, ends(&[4])), // one that is silent was started once
        ] {
            let mut view = samples::view(members);
            for member in done {
                samples::with_release(&mut view, *member as usize - 1, "3.5.30");
            }
            let (me, rules, keys) = (samples::me(&[1]), Rules::default(), with_agents_of(agents));
            let found = next(&Case { is_window_over, ..samples::case(&me, &rules, &keys, &view) });
            assert_eq!(found, expected, "{members}, done {done:?}, agents {agents:?}, window over: {is_window_over}");
        }
    }
}

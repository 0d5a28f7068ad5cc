//! Whether a run that stands may be replaced by another intent (`agent run --replace`).
//!
//! Pure. Nobody may be at work on it, nothing may be down or lost, and what the members run must fit the new
//! intent. Source: agent/PROTOCOL.md, "A run's life".
//!
//! The run and the record are compared, and not the key of every agent: an agent that comes in between finds another run at its
//! next write, which compares the run.

use super::{
    Case, Me, Next,
    refusal::Refusal,
    rules::{self, cluster_version, versions},
};
use crate::{
    keys::{At, Keys, Run, rules::Rules},
    observe::{evidence::Evidence, view::ClusterView},
};

#[derive(Debug)]
pub enum Replacement<'a> {
    /// No run with another intent stands.
    NotNeeded,
    Forbidden(Obstacle),
    /// A run of the new intent would not begin.
    Refused(Refusal),
    Of(&'a At<Run>),
}

/// What stands in the way of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A member is down, or may be.
    Down(proto::MemberId),
    /// The host of an abandoned step may still wake up.
    Lost(proto::MemberId),
    /// Another agent is at work, on the host of this name.
    Participant(String),
    /// A newcomer of the run that stands is on its way: nobody would know of it.
    Joining(String),
}

/// Whether the run in `keys` may be replaced.
pub fn replacement<'a>(me: &Me, keys: &'a Keys, (view, evidence): (&ClusterView, &Evidence)) -> Replacement<'a> {
    let standing = keys.run.as_ref().filter(|run| !run.value.is_over());
    let Some(run) = standing.filter(|run| *run.value.intent != *me.intent) else { return Replacement::NotNeeded };
    match (obstacle(me, keys), misfit(me, keys, (view, evidence))) {
        (Some(obstacle), _) => Replacement::Forbidden(obstacle),
        (None, Some(refusal)) => Replacement::Refused(refusal),
        (None, None) => Replacement::Of(run),
    }
}

/// What a run of this intent would not begin with, if none stood. Once it stands nobody asks what is asked before a run.
fn misfit(me: &Me, keys: &Keys, (view, evidence): (&ClusterView, &Evidence)) -> Option<Refusal> {
    let keys = Keys { run: None, ..keys.clone() };
    let rules = Rules::default();
    let case = Case {
        me,
        rules: &rules,
        keys: &keys,
        view,
        evidence: Some(evidence),
        is_window_over: true,
        closed_until: None,
        joined: None,
        in_hand: None,
        gone: &[],
        process: Default::default(),
        survey: None,
        join_failure: None,
        may_begin: None,
        may_resume: true,
        fresh: 0,
    };
    let refused = || match rules::before_a_run(&case) {
        Some(Next::Refuse(refusal)) => Some(refusal),
        _ => None,
    };
    versions::skew(&me.intent, view)
        .or_else(|| me.intent.change.kind().unready(view))
        .or_else(|| cluster_version::silent_on_it(&me.intent, view).map(|member| Refusal::NoClusterVersion { member }))
        .or_else(refused)
}

fn obstacle(me: &Me, keys: &Keys) -> Option<Obstacle> {
    if let Some(down) = &keys.step {
        return Some(Obstacle::Down(down.value.member));
    }
    if let Some(member) = keys.abandoned.keys().next() {
        return Some(Obstacle::Lost(*member));
    }
    let membership = keys.run.as_ref().filter(|run| !run.value.is_over()).and_then(|run| run.value.membership.clone());
    if let Some(join) = membership.and_then(|membership| membership.joins.first().cloned()) {
        return Some(Obstacle::Joining(join.seat.to_string()));
    }
    let another = keys.agents.iter().find(|(host, _)| **host != me.host);
    another.map(|(_, agent)| Obstacle::Participant(agent.value.host_name.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::Revision;

    use super::*;
    use crate::{
        keys::{
            Intent, RunId, RunState,
            change::{Change, Downgrade},
        },
        observe::view::{Answer, Role},
        plan::samples,
        unknown::Unknown,
    };

    /// An upgrade stands; the new playbook goes down from 3.5.
    fn seen() -> (Me, Keys, ClusterView) {
        let mut me = samples::me(&[1]);
        let change =
            Change::Downgrade(Downgrade { from: ">=3.5.0, <3.6.0".parse().unwrap(), to: "3.4.23".parse().unwrap() });
        let intent = me.intent.clone();
        me.intent = Arc::new(Intent { change, ..(*intent).clone() });
        let run = Run {
            id: RunId(1),
            intent,
            state: RunState::Rolling,
            changes_minor: true,
            done: Vec::new(),
            begun_by: None,
            membership: None,
            backup: None,
            pause: None,
            unknown: Unknown::default(),
        };
        let run = At { value: run, created: Revision(1), modified: Revision(1) };
        let mut view = samples::view("1+ 2+ 3+");
        for member in &mut view.members {
            let Answer::Reported(report) = &mut member.answer else { continue };
            report.release = "3.5.30".parse().unwrap();
            report.cluster_version = "3.5".parse().ok();
        }
        (me, Keys { run: Some(run), ..Keys::default() }, view)
    }

    #[test]
    fn it_is_replaced_only_by_one_that_would_begin() {
        let (me, keys, view) = seen();
        assert!(matches!(replacement(&me, &keys, (&view, &Evidence::default())), Replacement::Of(_)));

        let mut mixed = view.clone();
        let Answer::Reported(report) = &mut mixed.members[2].answer else { unreachable!() };
        report.release = "3.4.23".parse().unwrap();
        let said = replacement(&me, &keys, (&mixed, &Evidence::default()));
        assert!(matches!(said, Replacement::Refused(Refusal::Mixed { .. })), "{said:?}");

        let mut learner = view.clone();
        learner.members[2].role = Role::Learner;
        let said = replacement(&me, &keys, (&learner, &Evidence::default()));
        assert!(matches!(said, Replacement::Refused(Refusal::Learner { .. })), "{said:?}");

        let mut full = view.clone();
        samples::with_database(&mut full, 0, (96, Some(100)));
        let said = replacement(&me, &keys, (&full, &Evidence::default()));
        assert!(matches!(said, Replacement::Refused(Refusal::Hazard(_))), "{said:?}");

        let mut undecided = view;
        let Answer::Reported(report) = &mut undecided.members[0].answer else { unreachable!() };
        report.cluster_version = None;
        let said = replacement(&me, &keys, (&undecided, &Evidence::default()));
        assert!(matches!(said, Replacement::Refused(Refusal::NoClusterVersion { .. })), "{said:?}");
    }
}

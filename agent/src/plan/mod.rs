//! The planner: what may be done next, and if nothing, why.
//!
//! Pure: no I/O, no clock. [`next`] asks the rules in order and the first that has something to say decides.
//! The same function is asked when planning, after the baton was taken, and once more right before a member
//! is stopped, so the three can never disagree on what is safe. Source: ARCHITECTURE.md, I-1 to I-7.

pub mod change;
pub mod forecast;
pub mod gates;
pub mod no_return;
pub mod order;
pub mod put_back;
mod quorum;
pub mod refusal;
pub mod replace;
#[cfg(test)]
pub(crate) mod samples;
pub mod settled;
mod shared;
mod skew;
pub mod target;
pub mod twin;
mod verb;

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use proto::{ClusterVersion, MemberId};

use crate::{
    journal::progress::Leg,
    observe::view::ClusterView,
    rollout::{
        host_id::HostId,
        keys::{AttemptId, Going, Intent, Keys, ProcessId, Run, RunId, RunResult, RunState},
        rules::Rules,
        txn::Txn,
    },
};
use change::Kind;
use refusal::{Refusal, Wait};

/// What does not change while an agent runs: who it is and what it was told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Me {
    /// This host.
    pub host: HostId,
    /// Its name, for people.
    pub host_name: Arc<str>,
    /// The members that run on it.
    pub owns: Vec<MemberId>,
    /// What the playbook wants.
    pub intent: Arc<Intent>,
    /// What was typed.
    pub verb: Verb,
    /// `strategy.allow_degraded`
    pub allow_degraded: bool,
    /// `strategy.allow_downtime`
    pub allow_downtime: bool,
    /// `strategy.on_failure` is `rollback`: a member whose new binary fails is put back.
    pub put_back: bool,
    /// `--expect-agents`: so many are all there will be.
    pub expect_agents: Option<usize>,
}

/// Cheap, for the model checker: nothing else of it differs between the agents of one host.
impl Hash for Me {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.host, self.verb).hash(state);
    }
}

/// What the operator typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// `agent run`
    Run,
    /// `agent rollback`
    Rollback,
    /// `agent finalize`
    Finalize,
    /// `agent resume`
    Resume,
}

/// Everything one decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Who asks.
    pub me: &'a Me,
    /// The protocol's rules.
    pub rules: &'a Rules,
    /// What the hosts share.
    pub keys: &'a Keys,
    /// What the members said.
    pub view: &'a ClusterView,
    /// Whether enough time has passed for other agents to come.
    pub gathered: bool,
    /// The run this process has been part of.
    pub joined: Option<RunId>,
    /// The attempt whose record this process put.
    pub in_hand: Option<AttemptId>,
    /// Processes that have put something in this host's name, or at its members, and are gone.
    pub gone: &'a [ProcessId],
    /// The process that asks.
    pub process: ProcessId,
}

/// What may be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A rule forbids going on.
    Refuse(Refusal),
    /// Not yet.
    Wait(Wait),
    /// Begin the run.
    Begin,
    /// Move the run to another state; `at_rest`: only while no record stands.
    Move {
        /// The state.
        to: RunState,
        /// Whether the absence of a record is compared.
        at_rest: bool,
    },
    /// Write away what stands for nobody any more.
    Tidy(Txn),
    /// A record of this host's own, of no step in hand: look after its member, then delete it.
    Adopt(MemberId),
    /// Enable a downgrade to this version, or cancel the one that is enabled.
    Lower(Option<ClusterVersion>),
    /// Take this member down. Needs the baton.
    Go(Go),
    /// Every member is where it should be: wait for the cluster to settle, then end the run.
    Settle,
    /// Nothing more for this host.
    Finish(Finish),
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Go {
    /// The member.
    pub member: MemberId,
    /// Its direction.
    pub leg: Leg,
    /// It leads: leadership must pass to this member first.
    pub hand_over: Option<MemberId>,
}

/// How an agent ends well.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The run is done.
    Done(RunResult),
    /// Everything was at its target before.
    NothingToDo,
    /// This host's part is done; these members have no agent at work.
    Partial {
        /// Who is left.
        left: Vec<MemberId>,
    },
    /// The run holds before its last member.
    Held {
        /// The last member.
        member: MemberId,
    },
    /// The last member may go; its host must run.
    Approved {
        /// The last member, where it is known.
        left: Vec<MemberId>,
    },
}

impl Case<'_> {
    /// The run that stands; one that is done is history.
    fn standing(&self) -> Option<&Run> {
        self.keys.run.as_ref().map(|run| &run.value).filter(|run| !run.is_over())
    }

    /// What answers for the kind of change that is wanted.
    fn kind(&self) -> &dyn Kind {
        self.me.intent.change.kind()
    }

    fn leg(&self) -> Leg {
        match self.standing().is_some_and(Run::is_going_back) {
            true => Leg::Back,
            false => Leg::Forward,
        }
    }

    fn gathered(&self) -> bool {
        self.gathered || self.me.expect_agents.is_some_and(|expected| self.keys.agents.len() >= expected)
    }

    /// Whether the run changes the minor, and so has a point of no return.
    fn changes_minor(&self) -> bool {
        self.standing().map_or_else(|| target::changes_minor(&self.me.intent, self.view), |run| run.changes_minor)
    }

    /// The members that are not on the run's minor yet, in order of id: the last one's start closes the way back.
    fn old(&self) -> impl Iterator<Item = MemberId> {
        let members = self.view.members.iter();
        members.filter(|member| !target::is_on_new_minor(self, member)).map(|member| member.id)
    }

    /// The members that are not at their target, in order of id.
    fn undone(&self) -> impl Iterator<Item = &crate::observe::view::Member> {
        let leg = self.leg();
        self.view.members.iter().filter(move |member| !target::is_at(self, member, leg))
    }
}

/// What may be done next.
pub fn next(case: &Case) -> Next {
    let before_any_run = [
        twin::twin,
        shared::ownership,
        shared::stale,
        shared::other_run,
        shared::versions,
        shared::hindrance,
        shared::record,
        shared::lost,
        gates::supported,
    ];
    let within_a_run =
        [verb::verb, shared::mark, before_members_go_back, settled, hold, turn, quorum::alarm, before_members];
    let decided = |rules: &[fn(&Case) -> Option<Next>]| rules.iter().find_map(|rule| rule(case));
    decided(&before_any_run)
        .or_else(|| finished(case))
        .or_else(|| decided(&within_a_run))
        .unwrap_or_else(|| begin_first(case, order::order(case)))
}

fn before_members(case: &Case) -> Option<Next> {
    case.kind().before_members(case)
}

fn before_members_go_back(case: &Case) -> Option<Next> {
    case.kind().before_members_go_back(case)
}

/// A run is created by the first agent that nothing stands in the way of.
fn begin_first(case: &Case, next: Next) -> Next {
    match next {
        Next::Go(_) if case.standing().is_none() => {
            let unready = || case.kind().unready(case.view).map(Next::Refuse);
            undecided(case).or_else(unready).unwrap_or(Next::Begin)
        }
        next => next,
    }
}

/// Whether there is a way back is read off the cluster version, so each member must say it before anything is
/// stopped. A new cluster decides it within seconds.
fn no_version(intent: &Intent, view: &ClusterView) -> Option<MemberId> {
    intent.change.to()?;
    let is_silent =
        |member: &&crate::observe::view::Member| member.report().is_some_and(|report| report.cluster_version.is_none());
    view.members.iter().find(is_silent).map(|member| member.id)
}

fn undecided(case: &Case) -> Option<Next> {
    let member = no_version(&case.me.intent, case.view)?;
    Some(match case.gathered {
        true => Next::Refuse(Refusal::NoClusterVersion { member }),
        false => Next::Wait(Wait::Gather),
    })
}

fn finished(case: &Case) -> Option<Next> {
    let run = case.keys.run.as_ref().map(|run| &run.value);
    match run {
        Some(Run { id, state: RunState::Done { result }, .. })
            if case.joined == Some(*id) && !is_contradicted(case, *result) =>
        {
            Some(Next::Finish(Finish::Done(*result)))
        }
        _ if case.standing().is_none() && case.me.verb != Verb::Rollback => {
            all_ready_at_target(case).then(|| nothing_to_do(case))
        }
        _ => None,
    }
}

/// What a key says of the end is believed only where no member says otherwise (I-5): whoever may write the keys could say
/// that all is done.
fn is_contradicted(case: &Case, result: RunResult) -> bool {
    let Some(to) = case.me.intent.change.to() else { return false };
    let is_elsewhere = |member: &crate::observe::view::Member| member.release().is_some_and(|release| release != to);
    result == RunResult::Reached && case.view.members.iter().any(is_elsewhere)
}

/// Gates and versions that are not as expected are waited for, and told of, by a run in which no member goes.
fn nothing_to_do(case: &Case) -> Next {
    let is_unsettled = || settled::missing_versions(&case.me.intent, case.view, false).is_some();
    match case.me.verb == Verb::Run && (gates::are_contrary(case) || is_unsettled()) {
        true => Next::Begin,
        false => Next::Finish(Finish::NothingToDo),
    }
}

fn all_ready_at_target(case: &Case) -> bool {
    case.undone().next().is_none() && case.view.members.iter().all(|member| member.is_ready())
}

fn settled(case: &Case) -> Option<Next> {
    (case.standing().is_some() && all_ready_at_target(case)).then_some(Next::Settle)
}

/// `finalize: manual`: the run stops where one member of the old minor is left, and goes on when a person says so.
fn hold(case: &Case) -> Option<Next> {
    let run = case.standing()?;
    if case.me.intent.finalize != crate::rollout::keys::Finalize::Manual || !case.changes_minor() {
        return None;
    }
    let mut old = case.old();
    let (last, more) = (old.next()?, old.next().is_some());
    match (&run.state, more) {
        (RunState::Rolling, false) => Some(Next::Move { to: RunState::Held { member: last }, at_rest: false }),
        (RunState::Held { .. }, true) => Some(Next::Move { to: RunState::Rolling, at_rest: false }),
        (RunState::Held { member }, false) => Some(Next::Finish(Finish::Held { member: *member })),
        _ => None,
    }
}

/// A run that goes back and finds no voter on the old release goes forward again.
fn turn(case: &Case) -> Option<Next> {
    let turns = case.standing()?.going()? == Going::RollingBack && has_no_way_back(case, None);
    turns.then_some(Next::Move { to: RunState::Rolling, at_rest: true })
}

/// Whether no voter, other than this one, is seen on the old release any more, where that is the point of no return.
fn has_no_way_back(case: &Case, except: Option<MemberId>) -> bool {
    case.changes_minor()
        && case.rules.back_needs_an_old_voter
        && !no_return::another_is_old(&case.me.intent, case.view, except)
}

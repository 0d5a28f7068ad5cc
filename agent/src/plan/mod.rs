//! The planner: what may be done next, and if nothing, why.
//!
//! Pure: no I/O, no clock. [`next`] asks the rules in order and the first that has something to say decides.
//! The same function is asked when planning, after the baton was taken, and once more right before a member
//! is stopped, so the three can never disagree on what is safe. Source: agent/PROTOCOL.md, I-1 to I-7.

pub mod action;
mod backup;
pub mod change;
pub mod expected_members;
pub mod feature_state;
pub mod forecast;
pub mod gates;
mod guard;
pub mod hazard;
pub mod hops;
pub mod in_store;
pub mod membership;
pub mod no_return;
pub mod order;
mod owner;
pub mod protection;
pub mod put_back;
pub mod refusal;
pub mod replace_run;
pub mod rules;
#[cfg(test)]
pub(crate) mod samples;
pub mod settled;
pub mod target;
pub mod turn;
pub mod warning;
pub mod way;

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use proto::{ClusterVersion, MemberId};

use crate::{
    journal::restart::Direction,
    keys::{
        At, AttemptId, Intent, Keys, Participant, ProcessId, Run, RunId, RunResult, RunState, change::Change,
        host_id::HostId, rules::Rules, seat::Seats, txn::Txn,
    },
    observe::{
        evidence::Evidence,
        view::{ClusterView, Member},
    },
    unknown::Unknown,
};
use action::Action;
use change::Kind;
use membership::{Move, survey::Survey};
use refusal::{Refusal, Wait};
use warning::Warning;

/// What does not change while an agent runs: who it is and what it was told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Me {
    pub host: HostId,
    pub host_name: Arc<str>,
    pub seats: Seats,
    pub intent: Arc<Intent>,
    pub verb: Verb,
    /// `strategy.allow_degraded`
    pub allow_degraded: bool,
    /// `strategy.allow_downtime`
    pub allow_downtime: bool,
    /// `strategy.max_learners`
    pub max_learners: usize,
    pub on_failure: OnFailure,
    /// The program that `agent guard` runs, for people.
    pub command: Arc<str>,
    /// `--expect-agents`: so many are all there will be.
    pub expect_agents: Option<usize>,
}

/// What becomes of a member that did not become ready in its step: `strategy.on_failure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// Its old binary and files come back, where that is safe.
    PutBack,
    /// It runs in the end what it ran before: a restart that changes no file. If it has ended, it is started once more.
    StartAgain,
    Leave,
}

impl Me {
    /// What this process says of itself where it begins to take part.
    pub fn participant(&self, process: ProcessId) -> Participant {
        Participant {
            host_name: self.host_name.clone(),
            process,
            // A guard takes no part in a run: whoever waited for its members would wait for ever.
            seats: if matches!(self.verb, Verb::Guard(_)) { Seats::default() } else { self.seats.clone() },
            done: Vec::new(),
            waits_for: None,
            waits_since: None,
            waits_until: None,
            does: None,
            backed_up: None,
            is_closed: false,
            unknown: Unknown::default(),
        }
    }
}

/// Cheap, for the model checker: nothing else of it differs between the agents of one host.
impl Hash for Me {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.host, self.verb, &self.intent).hash(state);
    }
}

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
    /// `agent guard`
    Guard(Guard),
}

/// What is asked of `agent guard`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// To run a command.
    Command,
    /// `--check`: only to say whether it could.
    Check,
    /// `--finish`: to end the step of a command that was begun before.
    Finish,
}

/// Everything one decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub me: &'a Me,
    pub rules: &'a Rules,
    pub keys: &'a Keys,
    pub view: &'a ClusterView,
    /// What is asked once; `None` until it was.
    pub evidence: Option<&'a Evidence>,
    /// Whether enough time has passed for other agents to come.
    pub is_window_over: bool,
    /// When this host's window opens, where it is closed.
    pub closed_until: Option<&'a Arc<str>>,
    /// The run this process has been part of.
    pub joined: Option<RunId>,
    /// The attempt whose record this process put.
    pub in_hand: Option<AttemptId>,
    /// Processes that have put something in this host's name, or at its members, and are gone.
    pub gone: &'a [ProcessId],
    pub process: ProcessId,
    /// What a change of members is decided by; `None` where it was not asked for, or not had.
    pub survey: Option<&'a Survey>,
    /// Why this process gives its newcomer up.
    pub join_failure: Option<&'a Arc<str>>,
    /// The newcomer whose first start is this process's own: it may begin with no data.
    pub may_begin: Option<AttemptId>,
    /// Whether `agent resume` has not taken up yet what it found when it was typed.
    pub may_resume: bool,
    /// An id that was never used.
    pub fresh: u128,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Refuse(Refusal),
    Wait(Wait),
    /// Get the evidence that is asked for once, before a run begins.
    Examine,
    Begin,
    /// Move the run to another state; `at_rest`: only while no record stands.
    Move {
        to: RunState,
        /// Whether the absence of a record is compared.
        at_rest: bool,
    },
    /// Write away what stands for nobody any more.
    CleanUp(Txn),
    /// A record of this host's own, of no step in hand: look after its member, then delete it.
    Adopt(MemberId),
    /// Enable a downgrade to this version, or cancel the one that is enabled.
    Downgrade(Option<ClusterVersion>),
    Step(Action),
    /// The next thing in a change of members.
    Members(Move),
    /// Save one member's database, before anything is changed.
    BackUp,
    /// Every member is where it should be: wait for the cluster to settle, then end the run.
    Settle,
    /// Another hop of the way that the intent is on.
    Hop(Box<Change>),
    /// Nothing more for this host.
    Finish(Finish),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    Done(RunResult),
    /// Everything was at its target before.
    NothingToDo,
    /// This host's part is done; these members have no agent at work.
    Partial {
        left: Vec<MemberId>,
    },
    /// The same, in a change of members: these are to come or to go.
    Unseated {
        seats: Vec<Arc<str>>,
    },
    /// This host's part is done; the agents of these members wait for their hosts' windows.
    Closed {
        members: Vec<MemberId>,
    },
    /// The run holds before its last member.
    Held {
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
    fn current_run(&self) -> Option<&Run> {
        self.keys.run.as_ref().map(|run| &run.value).filter(|run| !run.is_over())
    }

    /// What answers for the kind of change that is wanted.
    fn kind(&self) -> &dyn Kind {
        self.me.intent.change.kind()
    }

    fn direction(&self) -> Direction {
        match self.current_run().is_some_and(Run::is_going_back) {
            true => Direction::Back,
            false => Direction::Forward,
        }
    }

    fn is_window_over(&self) -> bool {
        let has_part = |agent: &&At<Participant>| !agent.value.seats.is_empty();
        let count = || self.keys.agents.values().filter(has_part).count();
        self.is_window_over || self.me.expect_agents.is_some_and(|expected| count() >= expected)
    }

    /// Whether the run changes the minor, and so has a point of no return.
    fn changes_minor(&self) -> bool {
        self.current_run().map_or_else(|| target::changes_minor(&self.me.intent, self.view), |run| run.changes_minor)
    }

    /// The members that are not on the run's minor yet, in order of id: the last one's start closes the way back.
    fn old(&self) -> impl Iterator<Item = MemberId> {
        target::seated(self).filter(|member| !target::is_on_new_minor(self, member)).map(|member| member.id)
    }

    /// Whether every member is ready and where the run wants it.
    fn is_all_there(&self) -> bool {
        self.undone().next().is_none() && target::seated(self).all(Member::is_ready)
    }

    /// The members that are not at their target, in order of id.
    fn undone(&self) -> impl Iterator<Item = &Member> {
        let direction = self.direction();
        target::seated(self).filter(move |member| !target::is_at(self, member, direction))
    }
}

/// Whether there is something that `agent resume` takes up: the mark of a failed step, or members that others have changed. It takes up
/// what stood when it was typed, and nothing that came later: nobody has seen that.
pub fn is_to_be_resumed(case: &Case) -> bool {
    let Some(run) = case.current_run() else { return true };
    matches!(run.state, RunState::Failed { .. }) || membership::has_foreign_change(case)
}

/// What a person should know before it is done.
pub fn warnings(case: &Case) -> Vec<Warning> {
    match case.me.verb {
        // They are of runs.
        Verb::Guard(_) => Vec::new(),
        _ => rules::warnings(case),
    }
}

pub fn next(case: &Case) -> Next {
    if let Verb::Guard(asked) = case.me.verb {
        return rules::under_alarm(case, guard::next(case, asked));
    }
    if case.me.intent.change.changes_members() {
        return rules::under_alarm(case, backup::comes_first(case, membership::next(case)));
    }
    let next = rules::before_any_member(case).unwrap_or_else(|| match order::order(case) {
        // A run is created by the first agent that nothing stands in the way of.
        Next::Step(_) if case.current_run().is_none() => rules::before_a_run(case).unwrap_or(Next::Begin),
        next => next,
    });
    rules::under_alarm(case, backup::comes_first(case, next))
}

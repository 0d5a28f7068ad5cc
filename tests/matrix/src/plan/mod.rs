//! A plan: what is done to one cluster, step by step, and what goes wrong meanwhile. Data, printed before it is run.
//!
//! [`plan`] makes it of a cell: [`generate`](generate::steps) the steps, then [`edit`](edit::faults) the faults, as edits
//! of finished steps. [`sound`](sound::sound) judges any plan, whoever made it. No I/O, no clock.

pub mod edit;
pub mod generate;
pub mod hosts;
pub mod sound;
pub mod tree;

use std::{collections::BTreeSet, time::Duration};

use lab::fault::Moment;

use super::model::Cell;

/// What is done to one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub cell: Cell,
    pub steps: Vec<Step>,
}

/// One step, and what goes wrong in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its number when the plan was made; what is left of a plan that was made smaller keeps its numbers.
    pub id: usize,
    pub action: Action,
    pub faults: Vec<Fault>,
}

/// A member by its number, from 0; each is on a host of its own, with an agent of its own.
pub type Host = usize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The cluster is started at the old release, this member leads, and a data set is written.
    Start { leader: Host },
    /// Agents take the members of these hosts to the new release.
    Forward { hosts: Vec<Host>, pace: Pace },
    /// Agents of all hosts take back what is at the new release.
    Back,
    /// Nothing is done for a while.
    Rest { lasts: Duration },
    /// The last host's agent dies once its member is ready, agents of all hosts are told to go back, and refuse, as there
    /// is no way back; then they finish the run.
    TooLate { last: Host },
    /// Agents of all hosts make these hosts' members the voters: some come, or some go.
    Scale { to: Vec<Host> },
    /// Agents of all hosts put one member in another's place. Where both are of one host, it has lost its disk.
    Replace { member: Host, by: Host },
}

/// How the agents of several hosts are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// All at once.
    Together,
    /// One after the other has ended.
    InTurn,
}

/// What goes wrong, and its number: which of the faults of its step, when the plan was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From 1.
    pub id: usize,
    pub trouble: Trouble,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// An agent is killed at a sync of its journal, and the same command is run again.
    AgentKilled {
        host: Host,
        /// At which sync, from 1.
        sync: usize,
        moment: Moment,
    },
    /// An agent is killed once it has told of so many things, and the same command is run again.
    AgentCutShort { host: Host, after: usize },
    /// An agent is started so much later than the others.
    AgentLate { host: Host, by: Duration },
    /// Leadership is moved by somebody else, once agents have told of so many things.
    LeaderMoved { to: Host, after: usize },
    /// A member is killed as the step begins, and started again.
    MemberKilled {
        member: Host,
        /// After how long it is started again.
        back_after: Duration,
    },
    /// A member stands still from the beginning of the step.
    MemberPaused { member: Host, lasts: Duration },
    /// A member is restarted by hand.
    MemberRestarted { member: Host },
    /// Every host has its member restarted by `agent guard`, all at once.
    HostsGuarded,
    /// A member is killed at one of its syncs, before agents begin, and started again.
    MemberKilledAtSync {
        member: Host,
        /// Counted from the step's beginning for each of its threads, from 1.
        sync: usize,
        /// After how long it is started again.
        back_after: Duration,
    },
    /// Each sync of a member takes longer, from the beginning of the step.
    DiskSlow { member: Host, by: Duration, lasts: Duration },
    /// A member neither hears the others nor is heard by them, from the beginning of the step; clients reach it.
    MemberCutOff { member: Host, lasts: Duration },
    /// What is sent between a member and the others arrives later, from the beginning of the step.
    LinkSlow { member: Host, by: Duration, lasts: Duration },
    /// Every so often history is compacted and a member defragmented, as long as the step lasts.
    Maintained { every: Duration },
    /// A member says that its space is used up, before agents begin: nobody can write, and nobody may be taken down.
    AlarmRaised { of: Host, lasts: Duration },
    /// A member's host loses power, and with it whatever the member had not synced.
    PowerCut { member: Host },
}

impl Fault {
    /// As a record of the run calls it: `3.1`.
    pub fn name(&self, step: &Step) -> String {
        format!("{}.{}", step.id, self.id)
    }
}

impl Plan {
    /// Every step's and every fault's name.
    pub fn parts(&self) -> Vec<String> {
        let of = |step: &Step| {
            let faults = step.faults.iter().map(|fault| fault.name(step)).collect::<Vec<_>>();
            [step.id.to_string()].into_iter().chain(faults)
        };
        self.steps.iter().flat_map(of).collect()
    }

    /// The plan with these of its parts alone.
    pub fn only(&self, kept: &BTreeSet<String>) -> Self {
        let mut plan = self.clone();
        plan.steps.retain(|step| kept.contains(&step.id.to_string()));
        for step in &mut plan.steps {
            let names: Vec<_> = step.faults.iter().map(|fault| fault.name(step)).collect();
            let mut names = names.iter();
            step.faults.retain(|_| names.next().is_some_and(|name| kept.contains(name)));
        }
        plan
    }
}

/// The plan of a cell; of one cell it is always the same.
pub fn plan(cell: &Cell) -> Plan {
    let mut chance = cell.chance();
    let mut plan = Plan { cell: cell.clone(), steps: generate::steps(cell, &mut chance) };
    edit::faults(&mut plan, &mut chance);
    plan
}

#[cfg(test)]
#[path = "plan_test.rs"]
mod tests;

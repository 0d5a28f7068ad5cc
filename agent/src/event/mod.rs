//! What may happen while an agent works: the one vocabulary of display, lines, events and result.

pub mod trouble;

use proto::{ClusterVersion, MemberId};

use crate::{
    keys::{Keys, RunId, change::Change},
    observe::{canary::Availability, view::ClusterView},
    plan::{refusal::Wait, settled::Missing, warning::Warning},
};

/// Something that happened. [`RunEvent::name`] is what an events file calls it.
#[derive(Clone, Debug)]
pub enum RunEvent<'a> {
    /// What the agent's own canary was told (`strategy.canary`).
    Canary(&'a Availability),
    /// The agent has begun to work; nothing was asked yet.
    Begun {
        /// What it is to do, once the cluster is known; `None` before.
        change: Option<&'a Change>,
        /// The cluster's name in the playbook.
        cluster: &'a str,
    },
    /// It is about this hop of a way over several releases.
    Hop {
        /// Counted from 1.
        number: usize,
        of: usize,
        change: &'a Change,
    },
    /// It makes its host fit for the step, which takes a while.
    Preparing {
        /// What it is about, and how far that is.
        what: &'a str,
    },
    /// It takes part in this run.
    Joined {
        run: RunId,
    },
    /// An operator's word was written into the run.
    Decided(Decision),
    Waiting(Wait),
    BatonTaken,
    BatonGivenBack,
    /// A member's database is being saved, before anything is changed.
    BackingUp {
        /// How much of it is had.
        percent: u8,
    },
    /// It is.
    BackedUp {
        member: MemberId,
        path: &'a str,
    },
    /// Leadership was passed on.
    HandedOver {
        from: MemberId,
        to: MemberId,
    },
    /// A downgrade to this version is enabled, or the one that was is cancelled.
    Lowering {
        to: Option<ClusterVersion>,
    },
    /// The step lock stands.
    StepLocked {
        member: MemberId,
        /// Whether the member goes back.
        back: bool,
    },
    /// A step that an earlier run on this host left in the middle is gone on with.
    StepTakenOver {
        member: MemberId,
        /// Whether it was to take the member back.
        back: bool,
    },
    /// A member is being stopped.
    Stopping {
        member: MemberId,
    },
    Stopped {
        member: MemberId,
    },
    /// Its binary or files were switched.
    Switched {
        member: MemberId,
    },
    Started {
        member: MemberId,
    },
    /// It is ready, and has been for the soak time.
    Ready {
        member: MemberId,
    },
    /// The step lock is gone: the step is over.
    StepUnlocked {
        member: MemberId,
    },
    Failed {
        member: MemberId,
        why: &'a str,
    },
    /// A failed member is being put back on its old binary.
    PuttingBack {
        member: MemberId,
    },
    /// A failed member stays down until nobody still hears a version from its new binary.
    LettingPollsEnd {
        member: MemberId,
        seconds: u64,
    },
    /// A failed member is kept on its new binary: the way back is closed.
    KeptNew {
        member: MemberId,
    },
    /// A member that was found down was started.
    Mended {
        member: MemberId,
    },
    /// A node that was found down was started, before anybody could say which member it is.
    NodeStarted {
        /// Its name in the playbook.
        node: &'a str,
    },
    HookRan {
        member: MemberId,
        hook: &'a str,
    },
    /// The user's own health check of a member does not pass, or not for the same reason as before.
    ProbeFailed {
        member: MemberId,
        why: &'a str,
    },
    HookFailed {
        member: MemberId,
        hook: &'a str,
        why: &'a str,
    },
    /// What was in a data directory lies elsewhere now.
    DataPutAside {
        node: &'a str,
        path: &'a str,
    },
    /// A newcomer is listed, as a learner.
    NewcomerAdded {
        node: &'a str,
    },
    /// A learner votes.
    Promoted {
        member: MemberId,
    },
    /// A member is none any more.
    Removed {
        member: MemberId,
    },
    /// A guarded command has begun.
    CommandBegun {
        member: MemberId,
        command: &'a str,
    },
    CommandEnded {
        member: MemberId,
        command: &'a str,
        failed: Option<&'a str>,
    },
    /// The command of an earlier guard still runs, as this process.
    CommandAwaited {
        member: MemberId,
        pid: u32,
    },
    /// It has ended, and the host is about to go down.
    HostAwaited {
        member: MemberId,
    },
    /// Every member is at its target; versions, gates and hashes are awaited.
    Settling,
    /// It has not settled yet.
    Unsettled(&'a Missing),
    /// The cluster's gates are equal on every member, and as expected.
    GatesSettled,
    /// Versions and gates agree, and hashes where they were compared.
    Settled {
        hashes: bool,
    },
    /// A look was made. An events file has it where it shows another thing than the one before.
    Looked(&'a ClusterView),
    /// The keys were read. Shown, never written to an events file.
    Read(&'a Keys),
    /// Something that stops nothing, and that a person should know.
    Warning(&'a str),
    /// The same, as the planner or the catalogue of hazards has it.
    Warned {
        warning: &'a Warning,
        why: &'a str,
    },
    Ended {
        exit: u8,
        reason: &'static str,
        /// What happened, in one sentence for a person.
        message: &'a str,
        /// What state things were left in; empty where nothing is known.
        left: &'a str,
        /// The next command to type.
        next: Option<&'a str>,
    },
}

/// What an operator has decided about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// `run --replace`: this intent stands in the place of another.
    Replaced,
    /// `finalize`: the last member may go.
    Approved,
    /// `rollback`: the run goes back.
    TurnedBack,
    /// `resume`: the mark of a failed step is lifted.
    Resumed,
    /// `resume`: the pause of the run is lifted.
    Unpaused,
    /// `resume`: members that others have changed are as they are to be.
    Accepted,
}

impl Decision {
    fn name(self) -> &'static str {
        match self {
            Self::Replaced => "run_replaced",
            Self::Approved => "run_approved",
            Self::TurnedBack => "run_turned_back",
            Self::Resumed => "run_resumed",
            Self::Unpaused => "run_unpaused",
            Self::Accepted => "members_accepted",
        }
    }
}

impl RunEvent<'_> {
    /// Its name in an events file; `None` for what is not written there.
    pub fn name(&self) -> Option<&'static str> {
        Some(match self {
            Self::Begun { .. } => "begun",
            Self::Hop { .. } => "hop",
            Self::Preparing { .. } => "preparing",
            Self::Joined { .. } => "joined",
            Self::Decided(decision) => decision.name(),
            Self::Waiting(_) => "waiting",
            Self::BatonTaken => "baton_taken",
            Self::BatonGivenBack => "baton_given_back",
            Self::BackingUp { .. } => "backing_up",
            Self::BackedUp { .. } => "backed_up",
            Self::HandedOver { .. } => "handed_over",
            Self::Lowering { to: Some(_) } => "downgrade_enabled",
            Self::Lowering { to: None } => "downgrade_cancelled",
            Self::StepLocked { .. } => "step_locked",
            Self::StepTakenOver { .. } => "step_taken_over",
            Self::Stopping { .. } => "member_stopping",
            Self::Stopped { .. } => "member_stopped",
            Self::Switched { .. } => "member_switched",
            Self::Started { .. } => "member_started",
            Self::Ready { .. } => "member_ready",
            Self::StepUnlocked { .. } => "step_unlocked",
            Self::Failed { .. } => "member_failed",
            Self::PuttingBack { .. } => "member_putting_back",
            Self::LettingPollsEnd { .. } => "polls_awaited",
            Self::KeptNew { .. } => "member_kept_new",
            Self::Mended { .. } => "member_mended",
            Self::NodeStarted { .. } => "node_started",
            Self::HookRan { .. } => "hook_ran",
            Self::ProbeFailed { .. } => "probe_failed",
            Self::HookFailed { .. } => "hook_failed",
            Self::DataPutAside { .. } => "data_put_aside",
            Self::NewcomerAdded { .. } => "newcomer_added",
            Self::Promoted { .. } => "member_promoted",
            Self::Removed { .. } => "member_removed",
            Self::CommandBegun { .. } => "command_begun",
            Self::CommandEnded { .. } => "command_ended",
            Self::CommandAwaited { .. } => "command_awaited",
            Self::HostAwaited { .. } => "host_awaited",
            Self::Settling => "settling",
            Self::Unsettled(_) => "unsettled",
            Self::GatesSettled => "gates_settled",
            Self::Settled { .. } => "settled",
            Self::Canary(_) => "canary",
            Self::Warning(_) | Self::Warned { .. } => "warning",
            Self::Ended { .. } => "ended",
            Self::Looked(_) => "seen",
            Self::Read(_) => return None,
        })
    }

    pub fn member(&self) -> Option<MemberId> {
        match self {
            Self::BackedUp { member, .. }
            | Self::StepLocked { member, .. }
            | Self::StepTakenOver { member, .. }
            | Self::Stopping { member }
            | Self::Stopped { member }
            | Self::Switched { member }
            | Self::Started { member }
            | Self::Ready { member }
            | Self::StepUnlocked { member }
            | Self::Failed { member, .. }
            | Self::PuttingBack { member }
            | Self::LettingPollsEnd { member, .. }
            | Self::KeptNew { member }
            | Self::Mended { member }
            | Self::Promoted { member }
            | Self::Removed { member }
            | Self::CommandBegun { member, .. }
            | Self::CommandEnded { member, .. }
            | Self::CommandAwaited { member, .. }
            | Self::HostAwaited { member }
            | Self::HookRan { member, .. }
            | Self::ProbeFailed { member, .. }
            | Self::HookFailed { member, .. } => Some(*member),
            Self::HandedOver { from, .. } => Some(*from),
            Self::Waiting(wait) => wait.member(),
            _ => None,
        }
    }
}

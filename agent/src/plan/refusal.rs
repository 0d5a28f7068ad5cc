//! Why the planner says no, or not yet. Values, not errors: `report/stop/mod.rs` makes the sentences.

use std::{mem::discriminant, sync::Arc};

use proto::{ClusterVersion, MemberId, Release};

use super::{hazard::Hazard, membership::refusal::MembersRefusal};
use crate::{
    keys::{Pause, ProcessId, StepLock, host_id::HostId},
    observe::activity::Activity,
};

/// A rule that forbids going on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// A run with another intent stands; these are the parts that differ.
    OtherRun {
        differs: Vec<Difference>,
        /// The host whose agent began it, where that is known.
        begun_by: Option<Arc<str>>,
        /// Whether `agent run` waits until that run is over, as the two do not contradict each other (Q-18, L-16).
        takes_turns: bool,
    },
    /// The run goes back; `agent run` would go forward.
    GoingBack,
    /// There is no run that could go back.
    NothingToRollBack,
    /// There is no run whose mark could be lifted.
    NothingToResume,
    /// No voter is seen on the old release any more: an old binary would refuse to start.
    NoWayBack,
    /// The run does not hold, so there is nothing to finalize.
    NotHeld,
    /// The membership has none of this host's members.
    OwnsNothing,
    /// No majority agrees on a leader.
    NoLeader,
    /// The leader runs a release that neither `from` nor `to` allows.
    LeaderVersion { member: MemberId, release: Release },
    /// A member other than the leader does.
    MemberVersion { member: MemberId, release: Release },
    /// The step would leave out a minor.
    SkipsMinor {
        /// The member that is too old.
        member: MemberId,
        release: Release,
    },
    /// A member takes part beside its own release alone, and the run brings another.
    StrictJoin { member: MemberId },
    /// A downgrade is enabled: the cluster version cannot rise, and falls.
    GoingDown { target: ClusterVersion },
    /// A downgrade would begin while members run several minors.
    Mixed {
        /// The first that is not of the higher one.
        member: MemberId,
        release: Release,
    },
    /// A downgrade would begin while there is a learner.
    Learner { member: MemberId },
    /// Too few ready voters would stand.
    BelowQuorum {
        /// The member that would go down.
        down: MemberId,
        standing: usize,
        needed: usize,
    },
    /// A member is not ready and its host takes no part.
    NotReady { member: MemberId },
    /// A member does not say which cluster version it holds.
    NoClusterVersion { member: MemberId },
    /// Gates are expected, and a member that runs the target's release has none.
    GatesUnsupported { member: MemberId },
    /// Something known to hurt stands in the way.
    Hazard(Hazard),
    /// An alarm stands, of this kind.
    Alarm {
        /// Its kind in etcd's own word.
        kind: Arc<str>,
        /// The member that it is of.
        of: MemberId,
        /// The member whose word alone it is.
        alone: Option<MemberId>,
    },
    /// A step failed, and its owner has not come back.
    Failed { member: MemberId, why: Arc<str> },
    /// An abandoned step's host may still wake up.
    Abandoned { record: StepLock },
    /// Of a change of members.
    Members(MembersRefusal),
    /// Another agent goes by this host's id.
    TwinHost { host_name: Arc<str>, process: ProcessId },
    /// A record of this host's member, put by an agent that still lives, or lived on another machine.
    StepOfAnother {
        record: StepLock,
        /// Whether its process was seen alive.
        alive: bool,
    },
}

/// A part in which two intents differ, with both values as a person reads them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Difference {
    /// Its name in the playbook.
    pub part: &'static str,
    pub standing: String,
    pub wanted: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// The keys could not be read, or no member answered.
    Answer,
    /// Somebody else's step.
    Record {
        member: MemberId,
        host: HostId,
    },
    Baton {
        host: HostId,
    },
    /// Other agents that may still come.
    OthersToJoin,
    /// Members that go first, each with a live participant.
    Others {
        members: Vec<MemberId>,
    },
    /// The cluster version to be lowered to where a downgrade leads.
    Lowering {
        /// A member that does not hold it yet.
        member: MemberId,
        target: ClusterVersion,
    },
    /// A member's own data to be fit for the lower release.
    Storage {
        member: MemberId,
        /// Where the downgrade leads to.
        target: ClusterVersion,
    },
    /// What a member is in the middle of, to end.
    Activity {
        member: MemberId,
        activity: Activity,
    },
    /// A member that is not ready.
    Ready {
        member: MemberId,
    },
    /// A newcomer to take in what the others have.
    CatchUp {
        member: MemberId,
        /// Why it says nothing itself, if it does not.
        silence: Option<Arc<str>>,
        /// How many entries it lacks; only the first digit counts, so that the wait is not told anew with every entry.
        behind: u64,
    },
    /// Members that come or go, each with an agent at work.
    Seats {
        seats: Vec<Arc<str>>,
    },
    /// The cluster to do what it refuses as yet.
    Allowed {
        member: MemberId,
        why: Arc<str>,
    },
    /// A hold on the host of a member that is to leave, to be lifted by its owner.
    HeldHost {
        member: MemberId,
        host_name: Arc<str>,
        /// The hold's name.
        hold: Arc<str>,
        owner: Arc<str>,
    },
    /// The run of another kind that stands, and that agents are at work on.
    OtherRun {
        /// The host that began it, where that is known.
        begun_by: Option<Arc<str>>,
    },
    /// Somebody who takes what is written of a host back, again and again.
    Rewritten {
        host_name: Arc<str>,
    },
    /// Somebody to lift the pause of the run.
    Paused {
        pause: Arc<Pause>,
    },
    /// This host's window to open (`strategy.window`).
    Window {
        /// When it does, in its own time, for people.
        opens: Arc<str>,
    },
    /// The owner of a failed step.
    FailedOwner {
        member: MemberId,
    },
    /// The host of an abandoned step.
    AbandonedStep {
        member: MemberId,
    },
    /// An alarm to be disarmed, before what was waited for can come.
    UnderAlarm {
        /// Its kind in etcd's own word.
        kind: Arc<str>,
        /// The member that it is of.
        of: MemberId,
        /// The member whose word alone it is.
        alone: Option<MemberId>,
        /// What is waited for besides.
        wait: Box<Wait>,
    },
}

impl Wait {
    /// Whether this is the same wait, though other words may be said of it by now.
    pub fn goes_on_as(&self, later: &Self) -> bool {
        let is_of_one_member = self.member().is_some() && self.member() == later.member();
        self == later || is_of_one_member && discriminant(self) == discriminant(later)
    }

    /// The one member that is waited for, if it is one.
    pub fn member(&self) -> Option<MemberId> {
        match self {
            Self::Record { member, .. }
            | Self::Activity { member, .. }
            | Self::Ready { member }
            | Self::CatchUp { member, .. }
            | Self::Allowed { member, .. }
            | Self::Lowering { member, .. }
            | Self::Storage { member, .. }
            | Self::HeldHost { member, .. }
            | Self::FailedOwner { member }
            | Self::AbandonedStep { member } => Some(*member),
            Self::UnderAlarm { wait, .. } => wait.member(),
            Self::Answer
            | Self::Baton { .. }
            | Self::OthersToJoin
            | Self::Others { .. }
            | Self::Seats { .. }
            | Self::OtherRun { .. }
            | Self::Paused { .. }
            | Self::Window { .. }
            | Self::Rewritten { .. } => None,
        }
    }
}

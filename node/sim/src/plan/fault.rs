//! What may go wrong, as data.

use serde::{Deserialize, Serialize};
use simulated_disk::Chance;

use crate::network::HostId;

/// Whom it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Whom {
    Host(HostId),
    /// Whoever leads then.
    Leader,
    /// Some learner.
    Learner,
}

/// What a disk loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    All,
    Log,
    Snapshots,
    Identity,
}

/// What goes wrong, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The process ends at once; it is started again.
    Kill { whom: Whom, for_ms: u64 },
    /// It is asked to end, and started again.
    Restart { whom: Whom, for_ms: u64 },
    /// The machine loses its power, and what was not synced, or some of it.
    PowerLoss { whom: Whom, for_ms: u64 },
    /// All machines lose it at once.
    Blackout { for_ms: u64 },
    /// The process stands still.
    Freeze { whom: Whom, for_ms: u64 },
    /// Nobody reaches it, and it nobody.
    Isolate { whom: Whom, for_ms: u64 },
    /// What it sends does not arrive.
    Mute { whom: Whom, for_ms: u64 },
    /// What it sends is lost now and then, and sent again.
    Lossy { whom: Whom, for_ms: u64 },
    /// What it sends and gets takes long.
    Late { whom: Whom, for_ms: u64 },
    /// What it sends and gets comes through a narrow line.
    Narrow { whom: Whom, for_ms: u64 },
    /// Other members' connections to it break, and no new one is let in; it reaches them all the same.
    Shut { whom: Whom, for_ms: u64 },
    /// Its connections to other members break.
    Break { whom: Whom },
    /// Its syncs take long.
    SlowDisk { whom: Whom, for_ms: u64 },
    /// Its disk has no space.
    Full { whom: Whom, for_ms: u64 },
    /// Its clock jumps ahead.
    ClockJump { whom: Whom, by_ms: u64 },
    /// The unlucky machine loses this, and is started with what is left.
    Lose { part: Part, for_ms: u64 },
    /// The unlucky machine's disk is put away as it is.
    PutAway,
    /// What was put away takes the place of what the unlucky machine has.
    BringBack {
        for_ms: u64,
        /// Only where all others know of a start that came after the copy: they may be away then, and behind.
        is_known: bool,
    },
    /// A bit of the unlucky machine's newest snapshot turns over.
    FlipSnapshot,
    /// It is restarted with this minor, where it runs a lower one.
    Upgrade { host: HostId, minor: u64 },
    /// A downgrade by one minor is enabled.
    Downgrade,
    /// It is restarted with the release that the downgrade leads to, once its storage is ready for that.
    GoDown { host: HostId },
    /// The downgrade is called off.
    CallOff,
    /// It is restarted with the other patch of its minor, where there are two.
    Patch { whom: Whom },
    /// It is restarted with other wishes for the gate.
    Flags { whom: Whom, wishes: Wishes },
    /// Whoever leads as soon as the gate is due to be decided anew is cut off, perhaps with its decision under way.
    Depose { for_ms: u64 },
    /// A member is added on a new machine.
    Add { is_learner: bool },
    /// The learner is promoted.
    Promote,
    /// A member is removed, where enough are left.
    Remove { whom: Whom },
    /// A member is to be reached at another port, and is restarted there.
    Move { whom: Whom },
}

/// What `--cluster-feature-gates` says of each feature; nothing: the release's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wishes {
    pub lease_checkpoint: Option<bool>,
    #[serde(default)]
    pub compression: Option<bool>,
    pub counters: Option<bool>,
}

impl Wishes {
    pub(super) fn any(chance: &mut Chance) -> Self {
        let mut wish = || [None, Some(false), Some(true)][chance.below(3)];
        Self { lease_checkpoint: wish(), compression: wish(), counters: wish() }
    }
}

impl Fault {
    /// The kind, for counting.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Kill { .. } => "kill",
            Self::Restart { .. } => "restart",
            Self::PowerLoss { .. } => "power loss",
            Self::Blackout { .. } => "blackout",
            Self::Freeze { .. } => "freeze",
            Self::Isolate { .. } => "isolate",
            Self::Mute { .. } => "mute",
            Self::Lossy { .. } => "lossy",
            Self::Late { .. } => "late",
            Self::Narrow { .. } => "narrow",
            Self::Shut { .. } => "shut",
            Self::Break { .. } => "break",
            Self::SlowDisk { .. } => "slow disk",
            Self::Full { .. } => "full",
            Self::ClockJump { .. } => "clock jump",
            Self::Lose { part: Part::All, .. } => "disk emptied",
            Self::Lose { part: Part::Log, .. } => "log lost",
            Self::Lose { part: Part::Snapshots, .. } => "snapshots lost",
            Self::Lose { part: Part::Identity, .. } => "identity lost",
            Self::PutAway => "copy put away",
            Self::BringBack { is_known: false, .. } => "older copy",
            Self::BringBack { is_known: true, .. } => "copy of an earlier start",
            Self::FlipSnapshot => "bit flipped",
            Self::Upgrade { .. } => "upgrade",
            Self::Downgrade => "version lowered",
            Self::GoDown { .. } => "lower release",
            Self::CallOff => "downgrade called off",
            Self::Patch { .. } => "patch",
            Self::Flags { whom: Whom::Learner, .. } => "learner's flags",
            Self::Flags { .. } => "flags",
            Self::Depose { .. } => "leader cut off as it decides",
            Self::Add { is_learner: true } => "learner added",
            Self::Add { is_learner: false } => "voter added",
            Self::Promote => "promoted",
            Self::Remove { .. } => "removed",
            Self::Move { .. } => "moved",
        }
    }

    /// Whether another member than this is away for a while.
    pub(super) fn takes_away_others(&self, than: Whom) -> bool {
        match *self {
            Self::Kill { whom, .. }
            | Self::Restart { whom, .. }
            | Self::PowerLoss { whom, .. }
            | Self::Freeze { whom, .. }
            | Self::Isolate { whom, .. }
            | Self::Mute { whom, .. }
            | Self::Lossy { whom, .. }
            | Self::Late { whom, .. }
            | Self::Narrow { whom, .. }
            | Self::Shut { whom, .. }
            | Self::SlowDisk { whom, .. }
            | Self::Full { whom, .. } => whom != than,
            Self::Patch { whom } | Self::Flags { whom, .. } => whom != than,
            Self::Blackout { .. } | Self::Upgrade { .. } | Self::GoDown { .. } | Self::Depose { .. } => true,
            _ => false,
        }
    }

    /// Whether a disk loses what it has.
    pub(crate) fn harms_the_unlucky(&self) -> bool {
        matches!(self, Self::Lose { .. } | Self::PutAway | Self::BringBack { .. } | Self::FlipSnapshot)
    }

    /// All kinds.
    pub const KINDS: [&'static str; 36] = [
        "kill",
        "restart",
        "power loss",
        "blackout",
        "freeze",
        "isolate",
        "mute",
        "lossy",
        "late",
        "narrow",
        "shut",
        "break",
        "slow disk",
        "full",
        "clock jump",
        "disk emptied",
        "log lost",
        "snapshots lost",
        "identity lost",
        "copy put away",
        "older copy",
        "copy of an earlier start",
        "bit flipped",
        "upgrade",
        "version lowered",
        "lower release",
        "downgrade called off",
        "patch",
        "flags",
        "learner's flags",
        "leader cut off as it decides",
        "learner added",
        "voter added",
        "promoted",
        "removed",
        "moved",
    ];
}

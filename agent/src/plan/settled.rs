//! When a run has reached its end: what every member must say of versions and gates.
//!
//! Pure. Hashes are compared apart, since they take a scan. Source: agent/PROTOCOL.md, I-5.

use proto::{ClusterVersion, MemberId};

use super::gates;
use crate::{
    keys::Intent,
    observe::view::{ClusterView, Member},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    Answer {
        why: String,
    },
    /// A member does not answer.
    Silent {
        member: MemberId,
        why: String,
    },
    /// A member holds another cluster version.
    ClusterVersion {
        member: MemberId,
        found: Option<ClusterVersion>,
        wanted: Option<ClusterVersion>,
    },
    /// The cluster version is another one, and this member keeps it from rising: it was never started, and the leader
    /// waits for the release of every member that is listed (etcd, `decideClusterVersion`).
    NeverStarted {
        member: MemberId,
        wanted: Option<ClusterVersion>,
    },
    /// A member's data has another version.
    StorageVersion {
        member: MemberId,
        found: Option<ClusterVersion>,
        wanted: Option<ClusterVersion>,
    },
    /// A downgrade is still enabled.
    GoingDown {
        target: ClusterVersion,
    },
    /// Gates are expected of a member that has none.
    NoGates {
        member: MemberId,
    },
    /// A member could not be asked for its gates.
    GatesUnknown {
        member: MemberId,
        reason: String,
    },
    /// The gates are not decided yet.
    Undecided {
        /// The voters whose proposal is missing.
        awaited: Vec<MemberId>,
    },
    /// The members have a gate differently.
    Differing {
        gate: String,
    },
    /// No member knows a gate that is expected.
    NoSuchGate {
        gate: String,
        there_are: Vec<String>,
    },
    /// A gate is off that is expected on.
    KeptOff {
        gate: String,
        /// The voters whose proposal keeps it off.
        by: Vec<MemberId>,
    },
    /// A gate is on that is expected off.
    KeptOn {
        gate: String,
        /// Whether every voter wants it on.
        is_wanted: bool,
    },
}

impl Missing {
    /// Whether it stays so until a person changes something: waiting is no help.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::NoGates { .. } | Self::NoSuchGate { .. } | Self::NeverStarted { .. } => true,
            Self::KeptOff { by, .. } => !by.is_empty(),
            Self::KeptOn { is_wanted, .. } => *is_wanted,
            Self::Answer { .. }
            | Self::Silent { .. }
            | Self::ClusterVersion { .. }
            | Self::StorageVersion { .. }
            | Self::GoingDown { .. }
            | Self::GatesUnknown { .. }
            | Self::Undecided { .. }
            | Self::Differing { .. } => false,
        }
    }
}

/// What is still missing; `None` when the cluster has settled. Gates are expected of the way forward alone.
pub fn missing(intent: &Intent, view: &ClusterView, back: bool) -> Option<Missing> {
    let nothing = Default::default();
    let expected = if back { &nothing } else { &intent.gates };
    missing_versions(intent, view, back).or_else(|| gates::missing(expected, view))
}

/// What of that is not of gates.
pub(super) fn missing_versions(intent: &Intent, view: &ClusterView, back: bool) -> Option<Missing> {
    let kind = intent.change.kind();
    view.members.first()?;
    let wanted = kind.settled_version(view, back);
    let of_versions = view.started().find_map(|member| versions(member, wanted, back));
    let of_versions = of_versions.map(|missing| kept_by_one_never_started(view, missing));
    let is_downgrading = || kind.lowers_to().and(view.downgrade());
    of_versions.or_else(|| is_downgrading().map(|target| Missing::GoingDown { target }))
}

/// Who is to be started or removed is named in place of the member that happens to come first.
fn kept_by_one_never_started(view: &ClusterView, missing: Missing) -> Missing {
    let never = view.members.iter().find(|member| member.has_never_started());
    match (missing, never) {
        (Missing::ClusterVersion { wanted, .. }, Some(never)) => Missing::NeverStarted { member: never.id, wanted },
        (missing, _) => missing,
    }
}

fn versions(member: &Member, wanted: Option<ClusterVersion>, back: bool) -> Option<Missing> {
    let id = member.id;
    let Some(report) = member.report() else {
        let why = member.trouble().map_or_else(|| "no reason".to_owned(), |why| why.into_owned());
        return Some(Missing::Silent { member: id, why });
    };
    let found = report.cluster_version;
    if found != wanted || wanted.is_none() {
        return Some(Missing::ClusterVersion { member: id, found, wanted });
    }
    let found = report.storage_version;
    let is_other = !back && found.is_some() && found != wanted;
    is_other.then_some(Missing::StorageVersion { member: id, found, wanted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::{intent, view, with_cluster_version};

    #[test]
    fn every_member_must_say_the_targets_version_itself() {
        for (versions, settled) in [
            (["3.5", "3.5", "3.5"], true),
            (["3.5", "3.5", "3.4"], false),
            (["3.5", "", "3.5"], false), // undecided is not settled
            (["3.4", "3.4", "3.4"], false),
        ] {
            let mut view = view("1+ 2+ 3+");
            for (at, version) in versions.iter().enumerate() {
                with_cluster_version(&mut view, at, version);
            }
            assert_eq!(missing(&intent(">=3.4, <3.5", "3.5.30"), &view, false).is_none(), settled, "{versions:?}");
        }
        assert!(missing(&intent(">=3.4, <3.5", "3.5.30"), &view("1+ 2+ 3."), false).is_some());
        let never = missing(&intent(">=3.4, <3.5", "3.5.30"), &view("1+ 2+ 3?"), false).unwrap();
        assert_eq!(never, Missing::NeverStarted { member: MemberId(3), wanted: "3.5".parse().ok() });
        assert!(never.is_lasting(), "no wait makes it start");
        assert_eq!(missing(&intent(">=3.4, <3.5", "3.5.30"), &view("1+ 2+ 3?"), true), None, "the rest has settled");
        assert!(missing(&intent(">=3.4, <3.5", "3.5.30"), &view("1+ 2+ 3+"), true).is_none(), "back at 3.4");
    }
}

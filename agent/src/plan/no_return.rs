//! The point of no return: whether an old binary may still be started.
//!
//! It is the start of the last old member's new binary, not the version's rise: once that binary has
//! answered one version poll the leader may raise the cluster version at any instant, and an old binary
//! then refuses to start. So the way back is open only while another voter is *seen* on the old release,
//! or, for a member that is down by our hand, while every other member says that the version has not risen.
//! Only a change of minor has such a point: `target::changes_minor`.
//! Source: agent/PROTOCOL.md, R-9; etcd, `MustDetectDowngrade`.

use proto::{ClusterVersion, MemberId};

use super::Case;
use crate::{keys::Intent, observe::view::ClusterView};

/// Whether no voter, other than this one, is seen on the old release any more, where that is the point of no return.
pub(super) fn has_no_way_back(case: &Case, except: Option<MemberId>) -> bool {
    case.changes_minor() && case.rules.back_needs_an_old_voter && !another_is_old(&case.me.intent, case.view, except)
}

/// Whether a voter other than `except` is seen running an old release.
pub(super) fn another_is_old(intent: &Intent, view: &ClusterView, except: Option<MemberId>) -> bool {
    let Some(to) = intent.change.to() else { return true };
    view.voters()
        .filter(|member| Some(member.id) != except)
        .filter_map(|member| member.release())
        .any(|release| release.cluster_version() != to.cluster_version())
}

/// Whether every member but the one that is down is ready and reports a cluster version below the target's, and a
/// leader among them has a quorum without it: what a leader proposed and no quorum has decided, the next one may still
/// decide, and has decided once a linearizable read was answered; the version is asked for after that. A member that
/// does not answer, or has not been told a version, never counts as still old.
pub fn version_has_not_risen(view: &ClusterView, down: MemberId, target: ClusterVersion) -> bool {
    let is_led = view.leader().is_some_and(|leader| leader.id != down);
    is_led && others_are_below(view, down, target)
}

/// Whether every member but this one is ready and reports a cluster version below the target's.
pub(super) fn others_are_below(view: &ClusterView, member: MemberId, target: ClusterVersion) -> bool {
    let mut others = view
        .members
        .iter()
        .filter(|other| other.id != member)
        .map(|other| other.report().filter(|_| other.is_ready()).and_then(|report| report.cluster_version));
    others.all(|version| version.is_some_and(|version| version < target))
}

/// Another member that could not say, once `down` is down, whether the version has risen, and why.
pub(super) fn witness_missing(view: &ClusterView, down: MemberId) -> Option<Missing> {
    let mut others = view.members.iter().filter(|member| member.id != down);
    others.find_map(|member| match member.report().map(|report| report.cluster_version) {
        Some(Some(_)) if member.is_ready() => None,
        Some(None) if member.is_ready() => Some(Missing::Version(member.id)),
        _ => Some(Missing::Readiness(member.id)),
    })
}

/// What a member lacks to be a witness of the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is not ready.
    Readiness(MemberId),
    /// It does not say which version it holds.
    Version(MemberId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::{intent, view, with_cluster_version, with_release};

    #[test]
    fn the_way_back_is_open_while_another_voter_is_seen_on_the_old_release() {
        for (members, releases, open) in [
            ("1+ 2+ 3+", ["3.5.30", "3.4.23", "3.4.23"], true),
            ("1+ 2+ 3+", ["3.5.30", "3.5.30", "3.4.23"], true),
            ("1+ 2+ 3+", ["3.5.30", "3.5.30", "3.5.30"], false),
            ("1+ 2+ 3l", ["3.5.30", "3.5.30", "3.4.23"], false), // a learner is no voter
            ("1+ 2+ 3.", ["3.5.30", "3.5.30", "3.4.23"], false), // silent: not seen
        ] {
            let mut view = view(members);
            for (at, release) in releases.iter().enumerate() {
                with_release(&mut view, at, release);
            }
            let found = another_is_old(&intent(">=3.4, <3.5", "3.5.30"), &view, Some(MemberId(1)));
            assert_eq!(found, open, "{members} {releases:?}");
        }
    }

    #[test]
    fn only_every_others_own_word_says_that_the_version_has_not_risen() {
        let target = ClusterVersion { major: 3, minor: 5 };
        for (members, versions, open) in [
            ("1. 2+ 3+", ["", "3.4", "3.4"], true),
            ("1. 2+ 3+", ["", "3.4", "3.5"], false),
            ("1. 2+ 3.", ["", "3.4", ""], false), // a lost member never counts as still old
            ("1. 2+ 3-", ["", "3.4", "3.4"], false), // it may not have heard yet
            ("1. 2+ 3+", ["", "3.4", ""], false), // nor does an undecided version
            ("1.", ["", "", ""], false),          // a sole voter has nobody to say so
            ("1. 2-", ["", "3.4", ""], false),    // and one of two has no quorum
        ] {
            let mut view = view(members);
            for (at, version) in versions.iter().enumerate().take(view.members.len()) {
                with_cluster_version(&mut view, at, version);
            }
            assert_eq!(version_has_not_risen(&view, MemberId(1), target), open, "{members} {versions:?}");
        }
    }
}

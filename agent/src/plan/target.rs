//! Whether a member is where the run wants it.

use std::sync::Arc;

use proto::MemberId;

use super::Case;
use crate::{
    journal::progress::Leg,
    observe::view::{ClusterView, Member},
    rollout::keys::{Change, Intent, Run, RunId, RunState},
    unknown::Unknown,
};

/// Whether a member is at the end of its leg. A member that does not answer is judged by what its own
/// agent wrote; one that does is judged by what it says (I-5).
pub(super) fn is_at(case: &Case, member: &Member, leg: Leg) -> bool {
    let written = case.standing().is_some_and(|run| is_written_done(run, member.id));
    match &case.me.intent.change {
        Change::Restart { .. } => case
            .keys
            .run
            .as_ref()
            .is_some_and(|run| *run.value.intent == *case.me.intent && is_written_done(&run.value, member.id)),
        Change::Upgrade { to, .. } | Change::Downgrade { to, .. } => {
            let is_new = member.release().map_or(written, |release| release == to);
            is_new == (leg == Leg::Forward)
        }
    }
}

/// Whether a member runs what it is to run at the end. A restart leaves every member its release.
pub(super) fn has_its_release(case: &Case, member: &Member) -> bool {
    match &case.me.intent.change {
        Change::Restart { .. } => true,
        Change::Upgrade { to, .. } | Change::Downgrade { to, .. } => member.release() == Some(to),
    }
}

fn is_written_done(run: &Run, member: MemberId) -> bool {
    run.done.contains(&member)
}

/// Whether a member is on the minor that the run leads to: one whose start can raise the cluster version.
pub(super) fn is_on_new_minor(case: &Case, member: &Member) -> bool {
    let Some(to) = case.me.intent.change.to() else { return true };
    let written = || case.standing().is_some_and(|run| is_written_done(run, member.id));
    member.release().map_or_else(written, |release| release.cluster_version() == to.cluster_version())
}

/// Whether this change takes any member to another minor. The cluster version speaks for members that are
/// silent: none of them can be older than that, and where it is not known yet one may be.
pub fn changes_minor(intent: &Intent, view: &ClusterView) -> bool {
    let Some(to) = intent.change.to() else { return false };
    let wanted = to.cluster_version();
    let mut reports = view.members.iter().filter_map(Member::report);
    let has_risen = reports.clone().any(|report| report.cluster_version == Some(wanted));
    !has_risen || reports.any(|report| report.release.cluster_version() != wanted)
}

/// A run that nobody has taken a step in.
pub fn new_run(id: RunId, intent: &Arc<Intent>, view: &ClusterView) -> Run {
    let (intent, changes_minor) = (intent.clone(), changes_minor(intent, view));
    Run {
        id,
        intent,
        state: RunState::Rolling,
        changes_minor,
        done: Vec::new(),
        begun_by: None,
        unknown: Unknown::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::{intent, view, with_cluster_version, with_release};

    #[test]
    fn a_silent_member_may_be_the_one_that_is_old() {
        for (members, release, version, changes) in [
            ("1+ 2+ 3+", "3.4.23", "3.4", true),
            ("1+ 2+ 3+", "3.5.30", "3.5", false), // within a minor
            ("1+ 2+ 3.", "3.5.30", "3.5", false), // an old binary would not start any more
            ("1+ 2+ 3.", "3.5.30", "3.4", true),  // the version waits for the silent one
            ("1+ 2+ 3+", "3.5.30", "", true),     // not decided yet
        ] {
            let mut view = view(members);
            for at in 0..view.members.len() {
                with_release(&mut view, at, release);
                with_cluster_version(&mut view, at, version);
            }
            let found = changes_minor(&intent(">=3.4, <3.6", "3.5.31"), &view);
            assert_eq!(found, changes, "{members} {release} {version}");
        }
    }
}

//! Where a run leads, and whether a member is there.

use std::sync::Arc;

use proto::Release;

use super::Case;
use crate::{
    journal::restart::Direction,
    keys::{Intent, Run, RunId, RunState},
    observe::view::{ClusterView, Member},
    unknown::Unknown,
};

/// The end of a run that goes forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// Which seats there are then, and in which role each one's member is.
    pub seats: Seated,
    /// What every member runs then; `None` where each keeps its own.
    pub release: Option<&'a Release>,
}

/// Who has a seat at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seated {
    /// Whoever is listed, in the role it has: nobody comes and nobody goes.
    AsListed,
}

/// The members that have a seat at the end, and so are to be brought to the target, in order of id. One that never
/// started has no process to bring there.
pub(super) fn seated<'a>(case: &'a Case) -> impl Iterator<Item = &'a Member> + use<'a> {
    match case.kind().target().seats {
        Seated::AsListed => case.view.started(),
    }
}

/// Whether a member is at the end of its direction. A member that does not answer is judged by what its own
/// agent wrote; one that does is judged by what it says (I-5).
pub(super) fn is_at(case: &Case, member: &Member, direction: Direction) -> bool {
    case.kind().is_at(case, member, direction)
}

/// Whether a member runs what it is to run at the end.
pub(super) fn has_its_release(case: &Case, member: &Member) -> bool {
    case.me.intent.change.to().is_none_or(|to| member.release() == Some(to))
}

/// Whether a member is on the minor that the run leads to: one whose start can raise the cluster version.
pub(super) fn is_on_new_minor(case: &Case, member: &Member) -> bool {
    let Some(to) = case.me.intent.change.to() else { return true };
    let written = || case.current_run().is_some_and(|run| run.done.contains(&member.id));
    member.release().map_or_else(written, |release| release.cluster_version() == to.cluster_version())
}

/// Whether this change takes any member to another minor. The cluster version speaks for members that are
/// silent: none of them can be older than that, and where it is not known yet one may be.
pub fn changes_minor(intent: &Intent, view: &ClusterView) -> bool {
    intent.change.to().is_some_and(|to| changes_minor_to(to, view))
}

pub(super) fn changes_minor_to(to: &Release, view: &ClusterView) -> bool {
    let wanted = to.cluster_version();
    let mut reports = view.reports();
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
        membership: None,
        backup: None,
        pause: None,
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

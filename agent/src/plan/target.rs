//! Whether a member is where the run wants it.

use proto::MemberId;

use super::Case;
use crate::{
    journal::progress::Leg,
    observe::view::{ClusterView, Member},
    rollout::keys::{Change, Intent, Run},
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
        Change::Upgrade { to, .. } => {
            let is_new = member.release().map_or(written, |release| release == to);
            is_new == (leg == Leg::Forward)
        }
    }
}

fn is_written_done(run: &Run, member: MemberId) -> bool {
    run.done.contains(&member)
}

/// Whether this change takes any member to another minor.
pub fn changes_minor(intent: &Intent, view: &ClusterView) -> bool {
    match &intent.change {
        Change::Restart { .. } => false,
        Change::Upgrade { to, .. } => view
            .members
            .iter()
            .filter_map(|member| member.release())
            .any(|release| release.cluster_version() != to.cluster_version()),
    }
}

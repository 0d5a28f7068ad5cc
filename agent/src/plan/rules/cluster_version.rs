//! Every member must say which cluster version it holds.

use proto::MemberId;

use crate::{
    keys::Intent,
    observe::view::{ClusterView, Member},
    plan::{
        Case, Next,
        refusal::{Refusal, Wait},
    },
};

pub(super) fn cluster_version(case: &Case) -> Option<Next> {
    let member = silent_on_it(&case.me.intent, case.view)?;
    Some(match case.is_window_over {
        true => Next::Refuse(Refusal::NoClusterVersion { member }),
        false => Next::Wait(Wait::OthersToJoin),
    })
}

/// Whether there is a way back is read off the cluster version, so each member must say it before anything is
/// stopped. A new cluster decides it within seconds.
pub(in crate::plan) fn silent_on_it(intent: &Intent, view: &ClusterView) -> Option<MemberId> {
    intent.change.to()?;
    let is_silent = |member: &&Member| member.report().is_some_and(|report| report.cluster_version.is_none());
    view.members.iter().find(is_silent).map(|member| member.id)
}

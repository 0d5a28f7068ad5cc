//! What a downgrade needs before any member goes: the cluster version lowered, and each member's own data made fit for the
//! lower release. On the way back it is cancelled first, and the version rises again once nobody is lowered any more.
//!
//! Looked at, never validated twice: once it is under way the cluster answers that its target is none (etcd,
//! `DowngradeValidate`). Source: etcd's downgrade guides; KEP-4647, "Cluster Online Downgrade".

use proto::ClusterVersion;

use super::{
    Case, Next,
    refusal::{Refusal, Wait},
};
use crate::{
    journal::progress::Leg,
    observe::view::{ClusterView, Member, Report},
};

/// Where a downgrade of a minor leads to.
fn target(case: &Case) -> Option<ClusterVersion> {
    let change = &case.me.intent.change;
    let to = change.to().filter(|_| change.is_down() && case.changes_minor())?;
    Some(to.cluster_version())
}

fn reports(view: &ClusterView) -> impl Iterator<Item = &Report> {
    view.members.iter().filter_map(Member::report)
}

/// Enables it, or cancels it on the way back, and waits for what follows of that.
pub(super) fn lowering(case: &Case) -> Option<Next> {
    let target = target(case).filter(|_| case.standing().is_some())?;
    let under_way = reports(case.view).find_map(|report| report.downgrade);
    // A version that nothing holds where it is may rise at any moment.
    let is_held = under_way.is_some() || reports(case.view).any(|report| report.release.cluster_version() == target);
    let is_lowered = is_held && reports(case.view).any(|report| report.cluster_version == Some(target));
    match (case.leg(), under_way) {
        (Leg::Back, Some(_)) => Some(Next::Lower(None)),
        (Leg::Back, None) => None,
        (Leg::Forward, Some(other)) if other != target => Some(Next::Refuse(Refusal::GoingDown { target: other })),
        (Leg::Forward, _) if is_lowered => None,
        (Leg::Forward, None) => Some(Next::Lower(Some(target))),
        (Leg::Forward, Some(_)) => {
            let holds = |member: &&Member| member.report().and_then(|report| report.cluster_version) == Some(target);
            let silent = case.view.members.iter().find(|member| member.report().is_none());
            let member = silent.or_else(|| case.view.members.iter().find(|member| !holds(member)))?.id;
            Some(Next::Wait(Wait::Lowering { member, target }))
        }
    }
}

/// A member is stopped only when its own data can be read by what is started in its place.
pub(super) fn unfit(case: &Case, pick: &Member) -> Option<Next> {
    let target = target(case).filter(|_| case.leg() == Leg::Forward && case.standing().is_some())?;
    let found = pick.report().and_then(|report| report.storage_version);
    (found != Some(target)).then_some(Next::Wait(Wait::Storage { member: pick.id, target }))
}

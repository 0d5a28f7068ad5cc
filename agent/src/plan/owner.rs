//! Whose a record is, and whether its member is still one of the cluster's. Source: agent/PROTOCOL.md, R-1, R-12.

use proto::MemberId;

use super::{Case, Next, refusal::Refusal};
use crate::keys::{At, StepLock};

pub(super) enum Whose {
    /// This host's, and the agent that put it is gone.
    Mine,
    /// Of a member of this host, put by an agent that may still live.
    MinePerhaps,
    Anothers,
}

/// A record is this host's own where its process is gone, and its member runs here; what bears this host's id and has a
/// process at work was refused before.
pub(super) fn whose(case: &Case, record: &StepLock) -> Whose {
    let is_gone = case.process == record.process || case.gone.contains(&record.process);
    let owns = case.me.seats.has(record.member);
    match record.host == case.me.host {
        true if !case.rules.twins_are_refused => Whose::Mine,
        _ if owns && is_gone => Whose::Mine,
        _ if owns => Whose::MinePerhaps,
        _ => Whose::Anothers,
    }
}

/// A record that may belong to an agent at work is left to it.
pub(super) fn refuse(record: &At<StepLock>, case: &Case) -> Next {
    let alive = record.value.host.machine.is_some() && record.value.host.machine == case.me.host.machine;
    Next::Refuse(Refusal::StepOfAnother { record: record.value.clone(), alive })
}

/// Whether a majority says that this member was removed. Where this host has all voters there is nobody else to ask.
pub(super) fn is_removed(case: &Case, member: MemberId) -> bool {
    let is_all_mine = || case.view.voters().all(|voter| voter.is_ready() && case.me.seats.has(voter.id));
    let is_gone = case.view.leader().is_some() && case.view.member(member).is_none();
    is_gone && (case.view.removed_by(member, None).is_some() || is_all_mine())
}

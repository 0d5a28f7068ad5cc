//! Whether a run that stands may be replaced by another intent (`agent run --replace`).
//!
//! Pure. Nobody may be at work on it, nothing may be down or lost, and what the members run must fit the new
//! intent. Source: ARCHITECTURE.md, "A run's life".

use super::{Me, refusal::Refusal, skew};
use crate::{
    observe::view::ClusterView,
    rollout::keys::{At, Keys, Run},
};

/// The answer.
#[derive(Debug)]
pub enum Replacement<'a> {
    /// No run with another intent stands.
    NotNeeded,
    /// Not now.
    Forbidden(Obstacle),
    /// This one may be.
    Of(&'a At<Run>),
}

/// What stands in the way of a replacement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// A member is down, or may be.
    #[error("{0} is taken down by the run that stands; let it finish, or abandon that take-down first")]
    Down(proto::MemberId),
    /// The host of an abandoned take-down may still wake up.
    #[error("the take-down of {0} was abandoned, and its host may still wake up")]
    Lost(proto::MemberId),
    /// Another agent is at work.
    #[error("the agent on {0} is at work on the run that stands; stop it first")]
    Participant(String),
    /// The members' versions do not fit the new intent.
    #[error("the members do not run what the new playbook goes from: {0:?}")]
    Versions(Box<Refusal>),
}

/// Whether the run in `keys` may be replaced.
pub fn replacement<'a>(me: &Me, keys: &'a Keys, view: &ClusterView) -> Replacement<'a> {
    let standing = keys.run.as_ref().filter(|run| !run.value.is_over());
    let Some(run) = standing.filter(|run| *run.value.intent != *me.intent) else { return Replacement::NotNeeded };
    match obstacle(me, keys, view) {
        Some(obstacle) => Replacement::Forbidden(obstacle),
        None => Replacement::Of(run),
    }
}

fn obstacle(me: &Me, keys: &Keys, view: &ClusterView) -> Option<Obstacle> {
    if let Some(down) = &keys.down {
        return Some(Obstacle::Down(down.value.member));
    }
    if let Some(member) = keys.lost.keys().next() {
        return Some(Obstacle::Lost(*member));
    }
    if let Some((_, agent)) = keys.agents.iter().find(|(host, _)| **host != me.host) {
        return Some(Obstacle::Participant(agent.value.host_name.to_string()));
    }
    skew::skew(&me.intent, view).map(|refusal| Obstacle::Versions(Box::new(refusal)))
}

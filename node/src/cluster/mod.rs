//! What every member holds in common about the cluster itself: its version, its members, its gate.
//!
//! Pure and the same on every member: [`Cluster::apply`] reads the state and one entry, never a flag, a clock or the
//! binary's own release. What a leader proposes is said by [`leader_proposals`], what a member proposes of itself by
//! [`member::Member`] held against its wishes; both go by what *is*, not by what has just happened, so that a message
//! that is lost, late or doubled costs time and never agreement.
//! Source: KEP-4647, "Consensus Algorithm".

mod apply;
pub mod downgrade;
pub mod entry;
pub mod gate;
pub mod leader_proposals;
pub mod member;
pub mod membership;

use std::collections::{BTreeMap, BTreeSet};

use proto::{ClusterId, ClusterVersion, LogIndex, MemberId};

pub use crate::features::FIRST_WITH_GATES;
use crate::{
    api_error::ApiError,
    features::{Features, Registry},
};
use gate::Gate;
use member::Member;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    pub id: ClusterId,
    /// What the members have agreed on; `None` until the first decision.
    pub version: Option<ClusterVersion>,
    pub members: BTreeMap<MemberId, Member>,
    /// Who was one: their ids are never given again.
    pub removed: BTreeSet<MemberId>,
    /// What is on for the whole cluster.
    pub gate: Gate,
    /// The entry that last changed anything a gate is decided from. A decision made from older inputs is dropped.
    pub inputs: LogIndex,
    /// Where a downgrade leads to, for as long as one is enabled.
    pub downgrade: Option<ClusterVersion>,
    /// Where the cluster version has been lowered: the last entry that a member of the lower release must not replay.
    pub behind: Option<LogIndex>,
    /// By how many minors it was put at a lower version while nobody ran, ever: a member that was left out says another number.
    pub lowered_offline: u64,
}

impl Cluster {
    /// Those whose proposals decide.
    pub fn voters(&self) -> impl Iterator<Item = (MemberId, &Member)> {
        self.members.iter().filter(|(_, member)| !member.is_learner).map(|(id, member)| (*id, member))
    }

    /// Whether this member can be reached at these URLs from now on.
    ///
    /// # Errors
    /// In etcd's words (etcd, `ValidateConfigurationChange`): there is no such member, or another one is reached there.
    pub fn may_move(&self, member: MemberId, peer_urls: &[String]) -> Result<(), ApiError> {
        let mut others = self.members.iter().filter(|(id, _)| **id != member);
        match others.any(|(_, other)| other.peer_urls.iter().any(|url| peer_urls.contains(url))) {
            _ if !self.members.contains_key(&member) => Err(ApiError::MemberNotFound),
            true => Err(ApiError::PeerUrlExists),
            false => Ok(()),
        }
    }

    /// Whether gates exist at the version that the cluster has now.
    pub fn has_gates(&self) -> bool {
        self.version.is_some_and(|version| version >= FIRST_WITH_GATES)
    }

    /// What the voters' proposals come to: a feature is on where all of them want it on, and off where one does not
    /// or does not know it. `None` while a voter's proposal at this version is missing.
    /// Source: KEP-4647, "Start a New Cluster", step 4.
    pub fn reconciled(&self) -> Option<Features> {
        let version = self.version.filter(|_| self.has_gates())?;
        let proposals: Option<Vec<&Features>> = self.voters().map(|(_, member)| member.proposed_at(version)).collect();
        let proposals = proposals.filter(|proposals| !proposals.is_empty())?;
        let names = proposals.iter().flat_map(|features| features.names());
        let all_want = |name: &str| proposals.iter().all(|features| features.get(name) == Some(true));
        Some(names.map(|name| (name.to_owned(), all_want(name))).collect())
    }

    /// Whether a cluster-level feature is on for the whole cluster, as after the last entry that was applied. A lock
    /// at the cluster's version comes before the gate: a release that no longer has a name cannot switch it off for
    /// one that has it locked. Source: KEP-4647, "Interface Change for Server Code", "Feature Removal".
    pub fn is_enabled(&self, feature: &str, registry: &Registry) -> bool {
        let locked = self.version.and_then(|version| registry.locked(feature, version));
        locked.unwrap_or_else(|| self.gate.get(feature).unwrap_or(false))
    }
}

#[cfg(test)]
#[path = "cluster_test.rs"]
mod tests;

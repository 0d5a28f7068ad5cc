//! The way down: a downgrade is enabled, the version lowered, and each member's stored data made fit for the lower release;
//! only then is it restarted. Cancelled on the way it is an ordinary rise.
//! Source: KEP-4647, "Cluster Online Downgrade"; etcd, `server/etcdserver/version`.

use proto::{ClusterVersion, LogIndex};

use super::{Cluster, apply::next, gate::Gate};
use crate::api_error::ApiError;

/// The lowest cluster version that this node has a release for.
pub const LOWEST: ClusterVersion = ClusterVersion { major: 3, minor: 5 };

impl Cluster {
    /// Whether a downgrade to this version can be enabled.
    ///
    /// # Errors
    /// In etcd's words and order (etcd, `DowngradeValidate`): so whoever asks for one below the cluster's version is told
    /// of a downgrade that is under way, even at a version that nothing lies below.
    pub fn may_go_down_to(&self, target: ClusterVersion) -> Result<(), ApiError> {
        let version = self.version.ok_or(ApiError::ClusterVersionUnavailable)?;
        match self.downgrade {
            _ if version != next(target) => Err(ApiError::InvalidDowngradeTarget),
            Some(_) => Err(ApiError::DowngradeInProcess),
            None if target < LOWEST => Err(ApiError::InvalidDowngradeTarget),
            None => Ok(()),
        }
    }

    /// Puts it at this version without an entry, where nobody runs: the same on each member, wherever in the log it was stopped.
    pub fn lower_to(&mut self, target: ClusterVersion) {
        let minors = self.version.map_or(0, |version| version.minor.saturating_sub(target.minor));
        self.lowered_offline += minors;
        self.version = Some(target);
        (self.gate, self.inputs, self.downgrade, self.behind) = (Gate::Undecided, LogIndex(0), None, None);
        self.members.values_mut().for_each(|member| member.proposal = None);
    }

    /// Whether [`Cluster::lower_to`] was the last that changed it.
    pub fn was_lowered(&self) -> bool {
        self.version.is_some() && self.inputs == LogIndex(0)
    }

    /// What a member's stored data is fit for, whose stored snapshot holds everything up to this entry: the cluster's
    /// version, once a release of that would have nothing to replay that a higher version has shaped.
    pub fn storage_version(&self, snapshot: LogIndex) -> Option<ClusterVersion> {
        let version = self.version?;
        let is_fit = self.behind.is_none_or(|behind| snapshot >= behind);
        Some(if is_fit { version } else { next(version) })
    }
}

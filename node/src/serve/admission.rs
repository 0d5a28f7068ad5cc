//! What a request's metadata asks for, and who serves it.
//!
//! Two keys count. `hasleader: true`: refuse where no leader is known (etcd, `WithRequireLeader`). `require-feature: NAME`,
//! any number of times: refuse unless that feature of the cluster is on (KEP-4647, "Client APIs Changes").

use proto::gates::REQUIRE_FEATURE;
use tonic::{Status, metadata::MetadataMap};

use super::context::ServiceContext;
use crate::{
    api_error::ApiError,
    features::Registry,
    state::{Refusal, State},
};

/// etcd's `MetadataRequireLeaderKey`.
const HAS_LEADER: &str = "hasleader";

impl ServiceContext {
    /// Lets a request in that learners do not serve; the features that it requires. These are looked up where the state holds all
    /// that was acknowledged before: who has heard from one member that a feature is on is not refused by another that lags.
    pub(super) async fn admit(&self, metadata: &MetadataMap) -> Result<Vec<String>, Status> {
        if self.member.raft_status().is_learner {
            return Err(ApiError::NotSupportedForLearner.into());
        }
        let requires = self.required(metadata)?;
        if !requires.is_empty() {
            self.read(&requires, |_| Ok(())).await?;
        }
        Ok(requires)
    }

    /// Lets a request in that learners serve too, and that asks for this member's own state; the features that it requires, as they
    /// are here.
    pub(super) fn admit_to_any(&self, metadata: &MetadataMap) -> Result<Vec<String>, Status> {
        let requires = self.required(metadata)?;
        if !requires.is_empty() {
            self.read_here(&requires, |_| Ok(()))?;
        }
        Ok(requires)
    }

    fn required(&self, metadata: &MetadataMap) -> Result<Vec<String>, Status> {
        if wants_leader(metadata) && self.member.raft_status().leader.is_none() {
            return Err(ApiError::NoLeader.into());
        }
        let names = metadata.get_all(REQUIRE_FEATURE).iter();
        Ok(names.map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned()).collect())
    }
}

/// Whether the request is to be refused, and a stream to end, without a leader.
pub(super) fn wants_leader(metadata: &MetadataMap) -> bool {
    metadata.get(HAS_LEADER).is_some_and(|value| value == "true")
}

/// That all these features are on. Below the first cluster version that has gates none is, whatever a lock may say: there
/// may be members that do not see what an entry requires.
pub(super) fn check_features(state: &State, registry: &Registry, requires: &[String]) -> Result<(), Refusal> {
    let is_on = |feature: &&String| state.cluster.has_gates() && state.cluster.is_enabled(feature, registry);
    match requires.iter().find(|feature| !is_on(feature)) {
        Some(feature) => Err(Refusal::FeatureOff(feature.clone())),
        None => Ok(()),
    }
}

//! KEP-4647's `FeatureGateStatus`: what is on for the whole cluster, the same from every member.

use proto::etcdserverpb::{Feature, FeatureGateStatusRequest};

use crate::{features::Registry, state::State};

/// The features asked about, or all that are known at the cluster's version. What no release knows is off everywhere.
pub(super) fn status(state: &State, registry: &Registry, request: &FeatureGateStatusRequest) -> Vec<Feature> {
    let feature = |name: &str| Feature { name: name.to_owned(), enabled: state.cluster.is_enabled(name, registry) };
    if !request.features.is_empty() {
        return request.features.iter().map(|name| feature(name)).collect();
    }
    let version = state.cluster.version;
    version.map_or_else(Vec::new, |version| registry.known_at(version).map(|(known, _)| feature(known.name)).collect())
}

//! What is said of features that etcd has for a server alone: they are known, and change nothing here, but that one of them states
//! a wish for the cluster.

use super::Config;
use crate::features::{LEASE_CHECKPOINT, Registry, SERVER_LEASE_CHECKPOINT, Stage};

/// Stand for all features of a stage (etcd, `featuregate`).
pub(super) const ALL: [(&str, Stage); 2] = [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)];

/// Takes etcd's `LeaseCheckpoint` for a wish, where nothing is said of the cluster's own, and warns of the rest.
pub(super) fn settle(config: &mut Config, registry: Registry) {
    if !registry.has_gates() {
        let flags =
            [("cluster-feature-gates", &config.cluster_feature_gates), ("feature-gates", &config.feature_gates)];
        let said = flags.into_iter().filter(|(_, said)| !said.0.is_empty());
        config
            .warnings
            .extend(said.map(|(flag, _)| format!("--{flag}: this release has no gates; it counts from 3.6 on")));
        return;
    }
    let said = |name: &str| config.feature_gates.0.get(name).copied();
    let all = |stage| ALL.iter().find(|(_, of)| *of == stage).and_then(|(name, _)| said(name));
    let wish = said(SERVER_LEASE_CHECKPOINT).or_else(|| all(Stage::Alpha));
    for (name, is_on) in &config.feature_gates.0 {
        let is_all = ALL.iter().any(|(all, _)| all == name);
        if name != SERVER_LEASE_CHECKPOINT
            && !is_all
            && registry.get(name).map(|(_, spec)| spec.default) != Some(*is_on)
        {
            config.warnings.push(format!("--feature-gates: {name} is known and changes nothing here"));
        }
    }
    if let Some(is_on) = wish {
        config.cluster_feature_gates.0.entry(LEASE_CHECKPOINT.to_owned()).or_insert(is_on);
    }
}

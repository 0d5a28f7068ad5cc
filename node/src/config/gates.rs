//! What is said of features that etcd has for a server alone: they are known, and change nothing here, but that one of them states
//! a wish for the cluster.

use super::Config;
use crate::features::{FEATURES, Feature, LEASE_CHECKPOINT, Level, SERVER_LEASE_CHECKPOINT, Stage};

/// Stand for all features of a stage (etcd, `featuregate`).
pub(super) const ALL: [(&str, Stage); 2] = [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)];

/// Takes etcd's `LeaseCheckpoint` for a wish, where nothing is said of the cluster's own, and warns of the rest.
pub(super) fn settle(config: &mut Config) {
    let said = |name: &str| config.feature_gates.0.get(name).copied();
    let all = |stage| ALL.iter().find(|(_, of)| *of == stage).and_then(|(name, _)| said(name));
    let wish = said(SERVER_LEASE_CHECKPOINT).or_else(|| all(Stage::Alpha));
    for (name, is_on) in &config.feature_gates.0 {
        let is_all = ALL.iter().any(|(all, _)| all == name);
        if name != SERVER_LEASE_CHECKPOINT && !is_all && default(name) != Some(*is_on) {
            config.warnings.push(format!("--feature-gates: {name} is known and changes nothing here"));
        }
    }
    if let Some(is_on) = wish {
        config.cluster_feature_gates.0.entry(LEASE_CHECKPOINT.to_owned()).or_insert(is_on);
    }
}

fn default(name: &str) -> Option<bool> {
    let is_it = |feature: &&Feature| feature.level == Level::Server && feature.name == name;
    FEATURES.0.iter().find(is_it)?.specs.last().map(|spec| spec.default)
}

//! What is said of features that etcd has for a server alone: one of them states a wish for the cluster, and most change nothing here.

use proto::ClusterVersion;

use super::Config;
use crate::features::{
    ALL, INITIAL_CORRUPT_CHECK, LEASE_CHECKPOINT, Overrides, Registry, SERVER_LEASE_CHECKPOINT, SET_MEMBER_LOCAL_ADDR,
    Stage,
};

/// Those of a server's own features that change something here.
const USED: [&str; 3] = [SERVER_LEASE_CHECKPOINT, INITIAL_CORRUPT_CHECK, SET_MEMBER_LOCAL_ADDR];

/// Settles what is on of the server's own, takes etcd's `LeaseCheckpoint` for a wish, where nothing is said of the cluster's own, and
/// warns of what changes nothing.
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
    config.server_features = registry.of_server(&config.feature_gates);
    let said = |name: &str| config.feature_gates.0.get(name).copied();
    let all = |stage| ALL.iter().find(|(_, of)| *of == stage).and_then(|(name, _)| said(name));
    let wish = said(SERVER_LEASE_CHECKPOINT).or_else(|| all(Stage::Alpha));
    for (name, is_on) in &config.feature_gates.0 {
        let is_all = ALL.iter().any(|(all, _)| all == name);
        if !USED.contains(&name.as_str()) && !is_all && registry.get(name).map(|(_, spec)| spec.default) != Some(*is_on)
        {
            config.warnings.push(format!("--feature-gates: {name} is known and changes nothing here"));
        }
    }
    if let Some(is_on) = wish {
        config.cluster_feature_gates.0.entry(LEASE_CHECKPOINT.to_owned()).or_insert(is_on);
    }
}

/// What of these wishes counts for nothing once the cluster has this version: it locks the feature to the contrary. That is no error:
/// a cluster that rises must not keep a member from starting again.
pub fn overruled(registry: &Registry, version: ClusterVersion, wishes: &Overrides) -> Vec<String> {
    let words = |name: &str| {
        let wish = wishes.0.get(name).copied().unwrap_or_default();
        let locked = !wish;
        format!(
            "--cluster-feature-gates: {name}={wish} counts for nothing, as cluster version {version} locks it to {locked}"
        )
    };
    registry.overruled(version, wishes).map(words).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::features::{Feature, Level, Spec};

    #[test]
    fn a_wish_that_a_lock_overrules_is_named() {
        const fn at(minor: u64, is_locked: bool) -> Spec {
            Spec { since: ClusterVersion { major: 3, minor }, patch: 0, default: true, stage: Stage::Ga, is_locked }
        }
        const HISTORY: &[Feature] =
            &[Feature { name: "A", level: Level::Cluster, specs: &[at(6, false), at(8, true)] }];
        let registry = Registry::over(HISTORY, &"3.9.0".parse().unwrap());
        let locked = "--cluster-feature-gates: A=false counts for nothing, as cluster version 3.8 locks it to true";
        for (minor, wish, words) in
            [(7, false, None), (8, false, Some(locked)), (8, true, None), (9, false, Some("3.9"))]
        {
            let wishes = Overrides([("A".to_owned(), wish)].into());
            let found = overruled(&registry, ClusterVersion { major: 3, minor }, &wishes);
            assert_eq!(found.len(), usize::from(words.is_some()), "3.{minor} {wish}: {found:?}");
            assert!(words.is_none_or(|words| found[0].contains(words)), "{found:?}");
        }
    }
}

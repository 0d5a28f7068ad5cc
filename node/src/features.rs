//! Features: which there are, since when, what they are by default; and a member's wishes.
//!
//! A feature belongs to a server or to the whole cluster, for ever. What is said of it may change with each minor, never
//! with a patch. Source: KEP-4647, "Register New Feature Gates", "Feature Removal".

use std::collections::BTreeMap;

use proto::ClusterVersion;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features(BTreeMap<String, bool>);

impl Features {
    /// Whether this one is on; `None` where nothing is said of it.
    pub fn get(&self, name: &str) -> Option<bool> {
        self.0.get(name).copied()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// All names, on or off, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().map(|(name, on)| (name.as_str(), *on))
    }
}

/// Of a name that comes twice, off wins.
impl FromIterator<(String, bool)> for Features {
    fn from_iter<I: IntoIterator<Item = (String, bool)>>(items: I) -> Self {
        let mut features = BTreeMap::new();
        for (name, on) in items {
            features.entry(name).and_modify(|is_on| *is_on &= on).or_insert(on);
        }
        Self(features)
    }
}

/// What `--cluster-feature-gates` or `--feature-gates` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides(pub BTreeMap<String, bool>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Server,
    Cluster,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// May vanish in any release; off by default.
    Alpha,
    Beta,
    Ga,
    Deprecated,
}

/// What holds of a feature from one minor on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    pub since: ClusterVersion,
    /// What it is where nobody says otherwise.
    pub default: bool,
    pub stage: Stage,
    /// Whether nobody may say otherwise.
    pub is_locked: bool,
}

impl Spec {
    /// What the feature is for everybody, whatever the gate says, if it is locked.
    pub fn locked(&self) -> Option<bool> {
        self.is_locked.then_some(self.default)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Feature {
    pub name: &'static str,
    pub level: Level,
    /// What holds of it, by minor, oldest first.
    pub specs: &'static [Spec],
}

impl Feature {
    /// What holds at this version: the newest that is not above it.
    pub fn at(&self, version: ClusterVersion) -> Option<&Spec> {
        self.specs.iter().rev().find(|spec| spec.since <= version)
    }
}

/// All features that a release knows.
#[derive(Clone, Copy, Debug)]
pub struct Registry(pub &'static [Feature]);

/// Remaining times of leases go through the log, so that they outlive a change of leader.
pub const LEASE_CHECKPOINT: &str = "ClusterLeaseCheckpoint";
/// etcd's name for it, which is a server's: there it states what the member wants for the cluster. No name is there on both
/// levels (KEP-4647, "Register New Feature Gates").
pub const SERVER_LEASE_CHECKPOINT: &str = "LeaseCheckpoint";

/// Those of servers are etcd's (etcd, `DefaultEtcdServerFeatureGates`); none of them changes what this node does.
pub const FEATURES: Registry = Registry(&[
    Feature { name: LEASE_CHECKPOINT, level: Level::Cluster, specs: &[alpha(6), beta(7)] },
    server("CompactHashCheck", &[alpha(6)]),
    server("InitialCorruptCheck", &[alpha(6)]),
    server(SERVER_LEASE_CHECKPOINT, &[alpha(6)]),
    server("LeaseCheckpointPersist", &[alpha(6)]),
    server("SetMemberLocalAddr", &[alpha(6)]),
    server("StopGRPCServiceOnDefrag", &[alpha(6)]),
    server("TxnModeWriteWithSharedBuffer", &[beta(6)]),
    server("FastLeaseKeepAlive", &[beta(7)]),
    server("PriorityRequest", &[alpha(7)]),
]);

const fn server(name: &'static str, specs: &'static [Spec]) -> Feature {
    Feature { name, level: Level::Server, specs }
}

const fn alpha(since: u64) -> Spec {
    Spec { since: minor(since), default: false, stage: Stage::Alpha, is_locked: false }
}

const fn beta(since: u64) -> Spec {
    Spec { since: minor(since), default: true, stage: Stage::Beta, is_locked: false }
}

const fn minor(minor: u64) -> ClusterVersion {
    ClusterVersion { major: 3, minor }
}

impl Registry {
    /// A feature of the whole cluster, by name.
    pub fn cluster_level(&self, name: &str) -> Option<&'static Feature> {
        self.of(Level::Cluster).find(|feature| feature.name == name)
    }

    /// The features of the whole cluster that are known at this version, and what holds of them.
    pub fn known_at(self, version: ClusterVersion) -> impl Iterator<Item = (&'static Feature, &'static Spec)> {
        let cluster = self.0.iter().filter(|feature| feature.level == Level::Cluster);
        cluster.filter_map(move |feature| Some((feature, feature.at(version)?)))
    }

    fn of(&self, level: Level) -> impl Iterator<Item = &'static Feature> {
        self.0.iter().filter(move |feature| feature.level == level)
    }

    /// What a member with these flags wants at this version: of every feature that is known then, and no other. Where
    /// the version locks one, the flag is not asked: a cluster that rises must not keep a member from starting again.
    pub fn proposal(&self, version: ClusterVersion, overrides: &Overrides) -> Features {
        let wish = |feature: &Feature| {
            let spec = feature.at(version)?;
            let said = overrides.0.get(feature.name).copied().filter(|_| !spec.is_locked);
            Some((feature.name.to_owned(), said.unwrap_or(spec.default)))
        };
        self.of(Level::Cluster).filter_map(wish).collect()
    }

    /// The flags that the version overrules, for a warning.
    pub fn overruled<'a>(
        &'a self,
        version: ClusterVersion,
        overrides: &'a Overrides,
    ) -> impl Iterator<Item = &'static str> + 'a {
        let is_overruled = move |feature: &&'static Feature| {
            let locked = feature.at(version).and_then(Spec::locked);
            locked.zip(overrides.0.get(feature.name)).is_some_and(|(locked, said)| locked != *said)
        };
        self.of(Level::Cluster).filter(is_overruled).map(|feature| feature.name)
    }
}

#[cfg(test)]
#[path = "features_test.rs"]
mod tests;

//! Features: which there are, since when, what they are by default; and a member's wishes.
//!
//! A feature belongs to a server or to the whole cluster, for ever. What is said of it may change with each minor, never
//! with a patch. Source: KEP-4647, "Register New Feature Gates", "Feature Removal".

use std::collections::BTreeMap;

use proto::{ClusterVersion, Release};

mod history;
mod server;

pub use history::*;
pub use server::ALL;

/// Features, on or off: each once, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features(Vec<(String, bool)>);

impl Features {
    /// Whether this one is on; `None` where nothing is said of it. There are a handful, and most names differ in their length: no
    /// search is faster than a look at all.
    pub fn get(&self, name: &str) -> Option<bool> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, on)| *on)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
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
        Self(features.into_iter().collect())
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
    /// No release has it any more; what it was last it stays, and the name never comes back.
    Removed,
}

/// What holds of a feature from one minor on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    pub since: ClusterVersion,
    /// The first patch of that minor whose source says so: 0, but where a patch has changed the default.
    pub patch: u64,
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
    /// What holds of it, by minor and patch, oldest first.
    pub specs: &'static [Spec],
}

/// All features that a release knows: what the history of features says up to it.
#[derive(Clone, Copy, Debug)]
pub struct Registry {
    history: &'static [Feature],
    minor: ClusterVersion,
    patch: u64,
}

/// The first cluster version that has gates; 3.5 knows their entries and does nothing with them (KEP-4647, "Upgrade /
/// Downgrade Strategy").
pub const FIRST_WITH_GATES: ClusterVersion = history::minor(6);

/// What the newest release that is out knows.
pub const FEATURES: Registry = Registry { history: HISTORY, minor: history::minor(7), patch: 0 };

impl Registry {
    /// What this release knows.
    pub fn of(release: &Release) -> Self {
        Self::over(HISTORY, release)
    }

    /// What this release would know by another history.
    pub fn over(history: &'static [Feature], release: &Release) -> Self {
        Self { history, minor: release.cluster_version(), patch: release.0.patch }
    }

    /// Whether this release has gates at all (KEP-4647, "Upgrade / Downgrade Strategy").
    pub fn has_gates(&self) -> bool {
        self.minor >= FIRST_WITH_GATES
    }

    /// What holds of a feature at this version: the newest that is not above it, and that this release knows of.
    fn at(&self, feature: &Feature, version: ClusterVersion) -> Option<&'static Spec> {
        let is_known = |spec: &&Spec| (spec.since, spec.patch) <= (self.minor, self.patch);
        feature.specs.iter().rev().filter(is_known).find(|spec| spec.since <= version)
    }

    /// The features that this release has, and what holds of them in it: neither later ones, nor those that it has dropped.
    pub fn iter(self) -> impl Iterator<Item = (&'static Feature, &'static Spec)> {
        let own = move |feature: &'static Feature| Some((feature, self.at(feature, self.minor)?));
        self.history.iter().filter_map(own).filter(|(_, spec)| spec.stage != Stage::Removed)
    }

    /// A feature that this release has, by name.
    pub fn get(&self, name: &str) -> Option<(&'static Feature, &'static Spec)> {
        self.iter().find(|(feature, _)| feature.name == name)
    }

    /// What a feature of the whole cluster is for everybody at this version, where that locks it. All releases that can have that
    /// version say the same, those too that have dropped the name since (KEP-4647, "Feature Removal").
    pub fn locked(&self, name: &str, version: ClusterVersion) -> Option<bool> {
        let feature = self.cluster_level().find(|feature| feature.name == name)?;
        self.at(feature, version)?.locked()
    }

    /// The features of the whole cluster that there are at this version, and what holds of them.
    pub fn known_at(self, version: ClusterVersion) -> impl Iterator<Item = (&'static Feature, &'static Spec)> {
        let there = move |feature: &'static Feature| Some((feature, self.at(feature, version)?));
        self.cluster_level().filter_map(there).filter(|(_, spec)| spec.stage != Stage::Removed)
    }

    fn cluster_level(self) -> impl Iterator<Item = &'static Feature> {
        self.history.iter().filter(|feature| feature.level == Level::Cluster)
    }

    /// What a member with these flags wants at this version: of every feature that is known then, and no other. Where
    /// the version locks one, the flag is not asked: a cluster that rises must not keep a member from starting again.
    pub fn proposal(&self, version: ClusterVersion, overrides: &Overrides) -> Features {
        let has = |feature: &Feature| self.get(feature.name).is_some();
        let wish = |(feature, spec): (&Feature, &Spec)| {
            let said = overrides.0.get(feature.name).copied().filter(|_| !spec.is_locked);
            (feature.name.to_owned(), said.unwrap_or(spec.default))
        };
        self.known_at(version).filter(|(feature, _)| has(feature)).map(wish).collect()
    }

    /// The flags that the version overrules, for a warning.
    pub fn overruled(&self, version: ClusterVersion, overrides: &Overrides) -> impl Iterator<Item = &'static str> {
        let is_overruled = move |(feature, spec): &(&'static Feature, &Spec)| {
            spec.locked().zip(overrides.0.get(feature.name)).is_some_and(|(locked, said)| locked != *said)
        };
        self.known_at(version).filter(is_overruled).map(|(feature, _)| feature.name)
    }
}

#[cfg(test)]
#[path = "features_test.rs"]
#[allow(clippy::unwrap_used)]
mod tests;

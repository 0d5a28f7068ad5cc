//! The cluster's gates for display, lines, status, events and result.

use serde::{Deserialize, Serialize};

use crate::{
    observe::view::ClusterView,
    plan::gates::{self, Feature, GateStates},
    report::names::{Names, printable},
};

/// The gates of the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatesLine {
    /// Whether every member that was heard has them decided, by what every voter wants now.
    pub decided: bool,
    /// The members whose proposal is missing, by name.
    pub awaited: Vec<String>,
    pub features: Vec<FeatureLine>,
}

/// One feature of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureLine {
    pub name: String,
    /// Whether it is on; none where the members differ.
    pub enabled: Option<bool>,
    /// The members whose proposal keeps it off, by name.
    pub kept_off_by: Vec<String>,
}

/// How the gates stand; `None` where no member has any.
pub fn gates(view: &ClusterView, names: &Names) -> Option<GatesLine> {
    let GateStates { is_decided: decided, awaited, features } = gates::states(view)?;
    let short = |members: &[_]| members.iter().map(|member| names.short(*member)).collect();
    let line = |(name, feature): (&String, &Feature)| FeatureLine {
        name: printable(name).to_string(),
        enabled: feature.is_on,
        kept_off_by: short(&feature.kept_off_by),
    };
    Some(GatesLine { decided, awaited: short(&awaited), features: features.iter().map(line).collect() })
}

impl GatesLine {
    /// In words: what is on, what is off and by whom, or whose word is missing.
    pub fn words(&self) -> String {
        match (self.decided, self.awaited.is_empty(), self.features.is_empty()) {
            (false, true, _) => "undecided".to_owned(),
            (false, false, _) => format!("undecided, without a proposal of {}", self.awaited.join(", ")),
            (true, _, true) => "none".to_owned(),
            (true, _, false) => self.features.iter().map(FeatureLine::words).collect::<Vec<_>>().join("; "),
        }
    }
}

impl FeatureLine {
    fn words(&self) -> String {
        let Self { name, enabled, kept_off_by } = self;
        match enabled {
            Some(true) => format!("{name} on"),
            Some(false) if kept_off_by.is_empty() => format!("{name} off"),
            Some(false) => format!("{name} off, kept off by {}", kept_off_by.join(", ")),
            None => format!("{name} on with some members only"),
        }
    }
}

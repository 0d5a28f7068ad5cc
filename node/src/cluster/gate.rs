//! The cluster's gate: what is on for every member.

use crate::features::Features;

/// The gate. Undecided is something else than decided with nothing in it: the one asks for a decision, the other is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    #[default]
    Undecided,
    /// Each proposed feature, on or off.
    Decided(Features),
}

impl Gate {
    /// Whether a feature is on; `None` where the gate does not say.
    pub fn get(&self, feature: &str) -> Option<bool> {
        match self {
            Self::Undecided => None,
            Self::Decided(features) => features.get(feature),
        }
    }
}

//! That no step of a run is to begin until a person says so. Written by `agent pause`, taken away by `agent resume`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pause {
    /// The name of the host where it was typed, for people.
    pub by: Arc<str>,
    /// The moment in UTC, as RFC 3339 has it, for people.
    pub at: Arc<str>,
    /// The reason that was typed with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
}

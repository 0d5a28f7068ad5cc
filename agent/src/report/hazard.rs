//! Hazards, as a person reads them.

use super::names::Names;
use crate::plan::hazard::Hazard;

/// What was found, and what to do about it.
#[derive(Debug)]
pub struct Words {
    /// What was found.
    pub found: String,
    /// What ends it.
    pub remedy: &'static str,
}

/// Of one hazard.
pub fn words(hazard: &Hazard, _: &Names) -> Words {
    match *hazard {}
}

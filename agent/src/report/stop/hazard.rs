//! Hazards, as a person reads them.

use crate::{plan::hazard::Hazard, report::names::Names};

/// What was found, and what to do about it.
#[derive(Debug)]
pub struct Words {
    pub found: String,
    pub remedy: &'static str,
}

pub fn words(hazard: &Hazard, names: &Names) -> Words {
    match hazard {
        Hazard::Quota { member, percent } => Words {
            found: format!("the database of {} uses {percent} % of its quota", names.member(*member)),
            remedy: "compact and defragment it, or raise its `--quota-backend-bytes`",
        },
    }
}

//! Members whose clocks are not this host's: certificates, windows and the times of a report are judged by several.

use crate::plan::{Case, warning::Warning};

pub(super) fn clocks(case: &Case) -> Vec<Warning> {
    let found = case.evidence.into_iter().flat_map(|evidence| &evidence.clocks);
    found.map(|(member, apart)| Warning::Clock { member: *member, apart: *apart }).collect()
}

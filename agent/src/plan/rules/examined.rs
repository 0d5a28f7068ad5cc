//! What is costly to ask is asked before a run begins, and only once nothing cheaper stands in the way.

use crate::plan::{Case, Next};

pub(super) fn examined(case: &Case) -> Option<Next> {
    case.evidence.is_none().then_some(Next::Examine)
}

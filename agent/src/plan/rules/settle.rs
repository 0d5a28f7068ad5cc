//! Every member is where the run wants it, so the cluster is to settle.

use crate::plan::{Case, Next};

pub(super) fn settle(case: &Case) -> Option<Next> {
    (case.current_run().is_some() && case.is_all_there()).then_some(Next::Settle)
}

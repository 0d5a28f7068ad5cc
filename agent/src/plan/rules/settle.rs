//! Every member is where the run wants it, so the cluster is to settle.
//!
//! A run is ended as it stands after the cluster settled, not as it stood before that wait. Meanwhile others may have ended it,
//! begun another and marked that as failed: *done* written over it would lift the mark.

use crate::plan::{Case, Next};

pub(super) fn settle(case: &Case) -> Option<Next> {
    (case.current_run().is_some() && case.is_all_there()).then_some(Next::Settle)
}

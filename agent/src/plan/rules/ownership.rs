//! This host must have a member of the cluster.

use crate::plan::{Case, Next, refusal::Refusal};

pub(super) fn ownership(case: &Case) -> Option<Next> {
    let owns_any = case.me.seats.members().any(|own| case.view.member(own).is_some());
    (!owns_any).then_some(Next::Refuse(Refusal::OwnsNothing))
}

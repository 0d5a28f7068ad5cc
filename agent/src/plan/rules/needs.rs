//! What the kind of change needs of the cluster, and of each member.

use crate::{
    observe::view::Member,
    plan::{Case, Next},
};

/// Before any member goes forward.
pub(super) fn before_members(case: &Case) -> Option<Next> {
    case.kind().before_members(case)
}

/// Before any member goes back.
pub(super) fn before_members_go_back(case: &Case) -> Option<Next> {
    case.kind().before_members_go_back(case)
}

pub(super) fn before_member(case: &Case, pick: &Member) -> Option<Next> {
    case.kind().before_member(case, pick)
}

pub(super) fn before_a_run(case: &Case) -> Option<Next> {
    case.kind().unready(case.view).map(Next::Refuse)
}

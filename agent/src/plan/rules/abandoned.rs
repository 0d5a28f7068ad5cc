//! Steps that were abandoned: their host may still wake up.

use crate::{
    keys::txn::Txn,
    plan::{
        Case, Next,
        owner::{self, Whose},
        refusal::{Refusal, Wait},
    },
};

pub(super) fn abandoned(case: &Case) -> Option<Next> {
    case.keys.abandoned.iter().find_map(|(member, record)| {
        if record.value.members().all(|member| owner::is_removed(case, member)) {
            return Some(Next::CleanUp(Txn::clear_abandoned(*member, record.created)));
        }
        match owner::whose(case, &record.value) {
            // My own step, still in hand though it was given up: nobody else goes while the sign stands.
            Whose::Mine if case.in_hand == Some(record.value.attempt) => None,
            Whose::Mine if case.view.are_ready(record.value.members()) => {
                Some(Next::CleanUp(Txn::clear_abandoned(*member, record.created)))
            }
            Whose::Mine => Some(Next::Wait(Wait::Ready { member: *member })),
            Whose::MinePerhaps => Some(owner::refuse(record, case)),
            Whose::Anothers if case.keys.has_participant(*member) || !case.is_window_over() => {
                Some(Next::Wait(Wait::AbandonedStep { member: *member }))
            }
            Whose::Anothers => Some(Next::Refuse(Refusal::Abandoned { record: record.value.clone() })),
        }
    })
}

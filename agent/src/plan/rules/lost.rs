//! Take-downs that were abandoned: their host may still wake up.

use crate::{
    keys::txn::Txn,
    plan::{
        Case, Next,
        owner::{self, Whose},
        refusal::{Refusal, Wait},
    },
};

pub(super) fn lost(case: &Case) -> Option<Next> {
    case.keys.lost.iter().find_map(|(member, lost)| {
        if owner::is_removed(case, *member) {
            return Some(Next::CleanUp(Txn::clear_lost(*member, lost.created)));
        }
        match owner::whose(case, &lost.value) {
            // My own step, still in hand though it was given up: nobody else goes while the sign stands.
            Whose::Mine if case.in_hand == Some(lost.value.attempt) => None,
            Whose::Mine if case.view.is_ready(*member) => Some(Next::CleanUp(Txn::clear_lost(*member, lost.created))),
            Whose::Mine => Some(Next::Wait(Wait::Ready { member: *member })),
            Whose::MinePerhaps => Some(owner::refuse(lost, case)),
            Whose::Anothers if case.keys.has_participant(*member) || !case.is_window_over() => {
                Some(Next::Wait(Wait::LostOwner { member: *member }))
            }
            Whose::Anothers => Some(Next::Refuse(Refusal::Lost { record: lost.value.clone() })),
        }
    })
}

//! Keys that should be bound to a lease and are not: they would stand for ever.

use crate::{
    keys::txn::Txn,
    plan::{Case, Next},
};

/// What has no lease is nobody's: it goes before anything is planned.
pub(super) fn unleased(case: &Case) -> Option<Next> {
    let stale = case.keys.stale.first().filter(|_| case.in_hand.is_none())?;
    Some(Next::CleanUp(Txn::clear_stale(*stale)))
}

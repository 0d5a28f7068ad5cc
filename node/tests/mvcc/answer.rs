//! What a request came to, whoever answered it.

use node::{
    api_error::ApiError,
    mvcc::{Store, check, is_read_only},
};
use proto::etcdserverpb::{
    CompactionResponse, DeleteRangeResponse, LeaseGrantResponse, LeaseRevokeResponse, PutResponse, RangeResponse,
    TxnResponse,
};

use crate::random::Step;

/// An answer; of headers only the revision is left.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Put(PutResponse),
    Delete(DeleteRangeResponse),
    Range(RangeResponse),
    Txn(TxnResponse),
    Compact(CompactionResponse),
    Grant(LeaseGrantResponse),
    Revoke(LeaseRevokeResponse),
}

/// Checks a request and has the store answer it, as a member does.
pub fn answer(store: &mut Store, step: Step) -> Result<Answer, ApiError> {
    checked(&step)?;
    match step {
        Step::Put(request) => store.put(request).map(Answer::Put),
        Step::Delete(request) => Ok(Answer::Delete(store.delete_range(&request))),
        Step::Range(request) => store.range(&request).map(Answer::Range),
        Step::Txn(request) if is_read_only(&request) => store.read_txn(&request).map(Answer::Txn),
        Step::Txn(request) => store.txn(request).map(Answer::Txn),
        Step::Compact(request) => store.compact(&request).map(Answer::Compact),
        Step::Grant(request) => store.lease_grant(&request).map(Answer::Grant),
        Step::Revoke(request) => store.lease_revoke(&request).map(Answer::Revoke),
    }
}

/// What is wrong with a request whatever the state is.
pub fn checked(step: &Step) -> Result<(), ApiError> {
    match step {
        Step::Put(request) => check::put(request),
        Step::Delete(request) => check::delete_range(request),
        Step::Range(request) => check::range(request),
        Step::Txn(request) => check::txn(request, check::MAX_TXN_OPERATIONS),
        Step::Compact(_) | Step::Grant(_) | Step::Revoke(_) => Ok(()),
    }
}

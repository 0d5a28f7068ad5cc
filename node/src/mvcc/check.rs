//! What is wrong with a request whatever the state is: asked by the member that a client reached, before anything is
//! proposed, in etcd's order.
//!
//! Source: etcd, server/etcdserver/api/v3rpc/key.go.

use proto::etcdserverpb::{
    DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest,
    range_request::{SortOrder, SortTarget},
    request_op::Request,
};

use super::overlap;
use crate::api_error::ApiError;

/// How many operations one list of a transaction may have, unless a member is told otherwise (etcd, `--max-txn-ops`).
pub const MAX_TXN_OPERATIONS: usize = 128;

/// Checks a read.
///
/// # Errors
/// No key; an order or target that there is not.
pub fn range(request: &RangeRequest) -> Result<(), ApiError> {
    key(&request.key)?;
    match (SortOrder::try_from(request.sort_order), SortTarget::try_from(request.sort_target)) {
        (Ok(_), Ok(_)) => Ok(()),
        _ => Err(ApiError::InvalidSortOption),
    }
}

/// Checks a put.
///
/// # Errors
/// No key; a value or lease together with the wish to keep the one that is there.
pub fn put(request: &PutRequest) -> Result<(), ApiError> {
    key(&request.key)?;
    if request.ignore_value && !request.value.is_empty() {
        return Err(ApiError::ValueProvided);
    }
    if request.ignore_lease && request.lease != 0 {
        return Err(ApiError::LeaseProvided);
    }
    Ok(())
}

/// Checks a deletion.
///
/// # Errors
/// No key.
pub fn delete_range(request: &DeleteRangeRequest) -> Result<(), ApiError> {
    key(&request.key)
}

/// Checks a transaction whose lists may have `most` operations each; a nested one has what its parent's longest list leaves.
///
/// # Errors
/// Too many operations; something wrong with one of them; a key that would be written twice.
pub fn txn(request: &TxnRequest, most: usize) -> Result<(), ApiError> {
    operations(request, most)?;
    overlap::check(&request.success)?;
    overlap::check(&request.failure)
}

fn operations(request: &TxnRequest, most: usize) -> Result<(), ApiError> {
    let longest = request.compare.len().max(request.success.len()).max(request.failure.len());
    let left = most.checked_sub(longest).ok_or(ApiError::TooManyOperations)?;
    request.compare.iter().try_for_each(|condition| key(&condition.key))?;
    request.success.iter().chain(&request.failure).try_for_each(|one| operation(one, left))
}

fn operation(operation: &RequestOp, most: usize) -> Result<(), ApiError> {
    match &operation.request {
        Some(Request::RequestRange(request)) => range(request),
        Some(Request::RequestPut(request)) => put(request),
        Some(Request::RequestDeleteRange(request)) => delete_range(request),
        Some(Request::RequestTxn(request)) => operations(request, most),
        // etcd's answer to an empty operation.
        None => Err(ApiError::KeyNotFound),
    }
}

fn key(key: &[u8]) -> Result<(), ApiError> {
    if key.is_empty() { Err(ApiError::EmptyKey) } else { Ok(()) }
}

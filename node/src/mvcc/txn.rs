//! Transactions: conditions, then one of two lists of operations, at one revision.
//!
//! Source: etcd, `Txn` in server/etcdserver/txn/txn.go. All conditions, those of nested transactions too, are judged before
//! the first operation; reads see what earlier operations of the transaction wrote.

use proto::{
    LeaseId,
    etcdserverpb::{
        DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, ResponseHeader, ResponseOp, TxnRequest, TxnResponse,
        request_op::Request, response_op::Response,
    },
};

use super::{Store, header, write::Write};
use crate::api_error::ApiError;

/// Whether a transaction only reads, and so need not be proposed. A nested one counts as a write, as in etcd.
pub fn is_read_only(request: &TxnRequest) -> bool {
    ranges(request).all(|range| range.is_some())
}

/// Whether a transaction only reads what may be stale, and so needs no round of the quorum either.
pub fn is_serializable(request: &TxnRequest) -> bool {
    ranges(request).all(|range| range.is_some_and(|range| range.serializable))
}

/// The reads of both branches; `None` for what is no read.
pub fn ranges(request: &TxnRequest) -> impl Iterator<Item = Option<&RangeRequest>> {
    request.success.iter().chain(&request.failure).map(|operation| match &operation.request {
        Some(Request::RequestRange(range)) => Some(range),
        _ => None,
    })
}

impl Store {
    /// Performs a transaction.
    ///
    /// # Errors
    /// An operation of the branch taken is refused; nothing of the transaction was done then.
    pub fn txn(&mut self, request: TxnRequest) -> Result<TxnResponse, ApiError> {
        let branch = self.choose(request);
        self.check_branch(&branch)?;
        let mut write = self.write();
        let response = write.perform(branch)?;
        Ok(TxnResponse { header: header(write.end()), ..response })
    }

    /// Performs a transaction that [`is_read_only`]; an operation that is no read is left unanswered.
    ///
    /// # Errors
    /// A revision is compacted or not reached yet.
    pub fn read_txn(&self, request: &TxnRequest) -> Result<TxnResponse, ApiError> {
        let succeeded = self.all_hold(&request.compare);
        let operations = if succeeded { &request.success } else { &request.failure };
        let responses = operations.iter().map(|operation| self.read(operation)).collect::<Result<_, _>>()?;
        Ok(TxnResponse { header: header(self.revision), succeeded, responses })
    }

    fn read(&self, operation: &RequestOp) -> Result<ResponseOp, ApiError> {
        let Some(Request::RequestRange(range)) = &operation.request else { return Ok(ResponseOp::default()) };
        self.check_range(range)?;
        Ok(ResponseOp { response: Some(Response::ResponseRange(self.range(range)?)) })
    }

    /// Judges the conditions, of nested transactions too, and keeps what is to be done.
    fn choose(&self, request: TxnRequest) -> Branch {
        let succeeded = self.all_hold(&request.compare);
        let operations = if succeeded { request.success } else { request.failure };
        let operations = operations.into_iter().map(|operation| match operation.request {
            Some(Request::RequestRange(range)) => Operation::Range(range),
            Some(Request::RequestPut(put)) => Operation::Put(put),
            Some(Request::RequestDeleteRange(delete)) => Operation::Delete(delete),
            Some(Request::RequestTxn(nested)) => Operation::Nested(self.choose(nested)),
            None => Operation::Nothing,
        });
        Branch { succeeded, operations: operations.collect() }
    }

    fn check_branch(&self, branch: &Branch) -> Result<(), ApiError> {
        branch.operations.iter().try_for_each(|operation| match operation {
            Operation::Range(range) => self.check_range(range),
            Operation::Put(put) => self.check_put(put),
            Operation::Nested(nested) => self.check_branch(nested),
            Operation::Delete(_) | Operation::Nothing => Ok(()),
        })
    }

    /// Here etcd looks for the key before the lease, unlike in a put of its own.
    fn check_put(&self, put: &PutRequest) -> Result<(), ApiError> {
        if (put.ignore_value || put.ignore_lease) && self.head(&put.key).is_none() {
            return Err(ApiError::KeyNotFound);
        }
        self.leases.require(LeaseId(put.lease))
    }
}

/// What is left of a transaction once its conditions are judged.
struct Branch {
    succeeded: bool,
    operations: Vec<Operation>,
}

enum Operation {
    Range(RangeRequest),
    Put(PutRequest),
    Delete(DeleteRangeRequest),
    Nested(Branch),
    Nothing,
}

impl Write<'_> {
    /// The answer carries an empty header, as that of a nested transaction does in etcd.
    fn perform(&mut self, branch: Branch) -> Result<TxnResponse, ApiError> {
        let responses = branch.operations.into_iter().map(|operation| self.operate(operation));
        let responses = responses.collect::<Result<_, _>>()?;
        Ok(TxnResponse { header: Some(ResponseHeader::default()), succeeded: branch.succeeded, responses })
    }

    fn operate(&mut self, operation: Operation) -> Result<ResponseOp, ApiError> {
        let response = match operation {
            Operation::Range(range) => Response::ResponseRange(self.store().range_at(&range, self.revision())?),
            // A key that an earlier operation deleted cannot keep its value. etcd's member ends itself there.
            Operation::Put(put) => Response::ResponsePut(self.put_request(put)?),
            Operation::Delete(delete) => Response::ResponseDeleteRange(self.delete_request(&delete)),
            Operation::Nested(nested) => Response::ResponseTxn(self.perform(nested)?),
            Operation::Nothing => return Ok(ResponseOp::default()),
        };
        Ok(ResponseOp { response: Some(response) })
    }
}

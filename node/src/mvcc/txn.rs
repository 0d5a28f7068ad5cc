//! Transactions: conditions, then one of two lists of operations, at one revision.
//!
//! Source: etcd, `Txn` in server/etcdserver/txn/txn.go. All conditions, those of nested transactions too, are judged before
//! the first operation; reads see what earlier operations of the transaction wrote. They are made later, from a copy, which costs
//! nothing: no entry waits for them.

use std::{fmt, sync::Arc};

use prost::Message;
use proto::{
    LeaseId, Revision,
    etcdserverpb::{
        DeleteRangeRequest, PutRequest, RangeRequest, RangeResponse, RequestOp, ResponseHeader, ResponseOp, TxnRequest,
        TxnResponse, request_op::Request, response_op::Response,
    },
};

use super::{Extent, Operations, Store, header, write::Write};
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
    /// Performs a transaction, but for its reads.
    ///
    /// # Errors
    /// An operation of the branch taken is refused; nothing of the transaction was done then.
    pub fn perform(&mut self, request: TxnRequest) -> Result<Performed, ApiError> {
        let branch = self.choose(request);
        self.check_branch(&branch)?;
        let mut write = self.write();
        let performed = write.perform(branch, &mut None)?;
        Ok(Performed { header: header(write.end()), ..performed })
    }

    /// Performs a transaction, and makes its reads at once.
    ///
    /// # Errors
    /// As [`Store::perform`], and as [`Performed::answer`].
    pub fn txn(&mut self, request: TxnRequest) -> Result<TxnResponse, ApiError> {
        self.perform(request)?.answer()
    }

    /// Performs a transaction that [`is_read_only`]; an operation that is no read is left unanswered.
    ///
    /// # Errors
    /// A revision is compacted or not reached yet.
    pub fn read_txn(&self, request: &TxnRequest) -> Result<TxnResponse, ApiError> {
        let succeeded = self.all_hold(&request.compare);
        let operations = if succeeded { &request.success } else { &request.failure };
        let mut room = Room::of(self);
        let responses = operations.iter().map(|operation| self.read(operation, &mut room)).collect::<Result<_, _>>()?;
        Ok(TxnResponse { header: header(self.revision), succeeded, responses })
    }

    fn read(&self, operation: &RequestOp, room: &mut Room) -> Result<ResponseOp, ApiError> {
        let Some(Request::RequestRange(range)) = &operation.request else { return Ok(ResponseOp::default()) };
        self.check_range(range)?;
        room.taken(self.range(range)?)
    }

    /// Judges the conditions, of nested transactions too, and keeps what is to be done.
    fn choose(&self, request: TxnRequest) -> Branch {
        let fails = self.first_that_fails(&request.compare);
        let (succeeded, compared) = (fails.is_none(), fails.map_or(request.compare.len(), |at| at + 1));
        let operations = if succeeded { request.success } else { request.failure };
        let operations = operations.into_iter().map(|operation| match operation.request {
            Some(Request::RequestRange(range)) => Operation::Range(range),
            Some(Request::RequestPut(put)) => Operation::Put(put),
            Some(Request::RequestDeleteRange(delete)) => Operation::Delete(delete),
            Some(Request::RequestTxn(nested)) => Operation::Nested(self.choose(nested)),
            None => Operation::Nothing,
        });
        Branch { succeeded, compared: compared as u64, operations: operations.collect() }
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
    /// As many conditions were judged.
    compared: u64,
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
    /// The answer carries an empty header, as that of a nested transaction does in etcd. `seen`: what the last read saw, as
    /// long as nothing was written since.
    fn perform(&mut self, branch: Branch, seen: &mut Option<Arc<Store>>) -> Result<Performed, ApiError> {
        let (mut done, mut compared) = (Operations::default(), branch.compared);
        let mut operations = Vec::with_capacity(branch.operations.len());
        for operation in branch.operations {
            match &operation {
                Operation::Range(_) => done.ranges += 1,
                Operation::Put(put) => done.note_put(put),
                Operation::Delete(delete) => done.note_delete(delete),
                Operation::Nested(_) | Operation::Nothing => {}
            }
            let step = self.operate(operation, seen)?;
            if let Step::Nested(nested) = &step {
                done.add(nested.done);
                compared += nested.compared;
            }
            operations.push(step);
        }
        let header = Some(ResponseHeader::default());
        Ok(Performed { header, succeeded: branch.succeeded, operations, done, compared })
    }

    fn operate(&mut self, operation: Operation, seen: &mut Option<Arc<Store>>) -> Result<Step, ApiError> {
        let response = match operation {
            Operation::Range(range) => {
                let store = seen.get_or_insert_with(|| Arc::new(self.store().clone())).clone();
                return Ok(Step::Read(Read { range, newest: self.revision(), store }));
            }
            Operation::Nested(nested) => return self.perform(nested, seen).map(Step::Nested),
            // A key that an earlier operation deleted cannot keep its value. etcd's member ends itself there.
            Operation::Put(put) => Response::ResponsePut(self.put_request(put)?),
            Operation::Delete(delete) => Response::ResponseDeleteRange(self.delete_request(&delete)),
            Operation::Nothing => return Ok(Step::Done(ResponseOp::default())),
        };
        *seen = None;
        Ok(Step::Done(answered(response)))
    }
}

/// What a transaction has come to. Every member performs it; its reads are made by whoever waits for the answer, and by no other:
/// a transaction of a few hundred bytes can ask for the whole state a hundred times.
#[derive(Clone, Debug, PartialEq)]
pub struct Performed {
    header: Option<ResponseHeader>,
    succeeded: bool,
    operations: Vec<Step>,
    done: Operations,
    compared: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Done(ResponseOp),
    Read(Read),
    Nested(Performed),
}

/// A read that is still to be made, of the state as its transaction had it then.
#[derive(Clone, PartialEq)]
struct Read {
    range: RangeRequest,
    newest: Revision,
    store: Arc<Store>,
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read").field("range", &self.range).field("newest", &self.newest).finish_non_exhaustive()
    }
}

impl Performed {
    /// What is counted of it: its conditions are judged before it begins, and are counted by themselves, as with etcd.
    pub fn operations(&self) -> [Operations; 2] {
        [Operations { ranges: self.compared, ..Operations::default() }, self.done]
    }

    /// How much there is to read for its answer.
    pub fn extent(&self) -> Extent {
        let of = |step: &Step| match step {
            Step::Done(_) => Extent::OneKey,
            Step::Read(read) => read.store.extent(&read.range),
            Step::Nested(nested) => nested.extent(),
        };
        self.operations.iter().map(of).max().unwrap_or(Extent::OneKey)
    }

    /// Makes the reads.
    ///
    /// # Errors
    /// [`ApiError::AnswerTooLarge`]: the transaction was performed.
    pub fn answer(self) -> Result<TxnResponse, ApiError> {
        self.answer_within(&mut None)
    }

    fn answer_within(self, room: &mut Option<Room>) -> Result<TxnResponse, ApiError> {
        let make = |step| match step {
            Step::Done(done) => Ok(done),
            Step::Nested(nested) => Ok(answered(Response::ResponseTxn(nested.answer_within(room)?))),
            Step::Read(Read { range, newest, store }) => {
                let found = store.range_at(&range, newest)?;
                room.get_or_insert_with(|| Room::of(&store)).taken(found)
            }
        };
        let responses = self.operations.into_iter().map(make).collect::<Result<_, _>>()?;
        Ok(TxnResponse { header: self.header, succeeded: self.succeeded, responses })
    }
}

/// How many bytes the reads of a transaction may still answer: all that there is, once, and what is little anyway. etcd sets no
/// bound, and its member is gone with its memory.
struct Room(u64);

impl Room {
    const LITTLE: u64 = 64 << 20;

    fn of(store: &Store) -> Self {
        Self(store.size_bytes() + Self::LITTLE)
    }

    fn taken(&mut self, found: RangeResponse) -> Result<ResponseOp, ApiError> {
        self.0 = self.0.checked_sub(found.encoded_len() as u64).ok_or(ApiError::AnswerTooLarge)?;
        Ok(answered(Response::ResponseRange(found)))
    }
}

fn answered(response: Response) -> ResponseOp {
    ResponseOp { response: Some(response) }
}

//! Answers: each has a header, which says who gives it.

use proto::{
    batonpb::AddResponse,
    etcdserverpb::{
        AlarmResponse, CompactionResponse, DeleteRangeResponse, HashKvResponse, LeaseGrantResponse,
        LeaseLeasesResponse, LeaseRevokeResponse, LeaseTimeToLiveResponse, PutResponse, RangeResponse, ResponseHeader,
        TxnResponse,
    },
};
use tonic::{Response, Status};

use super::context::ServiceContext;
use crate::state::Applied;

pub(super) trait Answer {
    fn header(&mut self) -> &mut Option<ResponseHeader>;
}

/// An answer that an entry gives where it is applied.
pub(super) trait Outcome: Answer + Sized {
    fn of(applied: Applied) -> Option<Self>;
}

impl ServiceContext {
    pub(super) fn answer<A: Answer>(&self, mut answer: A) -> Result<Response<A>, Status> {
        self.sign(answer.header());
        Ok(Response::new(answer))
    }

    /// Signs what came of an entry.
    pub(super) fn outcome<A: Outcome>(&self, applied: Applied) -> Result<Response<A>, Status> {
        let outcome = A::of(applied).ok_or_else(|| Status::internal("the answer to another kind of entry"))?;
        self.answer(outcome)
    }
}

macro_rules! answers {
    ($($answer:ident),*) => {
        $(impl Answer for $answer {
            fn header(&mut self) -> &mut Option<ResponseHeader> {
                &mut self.header
            }
        })*
    };
}

macro_rules! outcomes {
    ($($answer:ident $kind:ident),*) => {
        answers!($($answer),*);
        $(impl Outcome for $answer {
            fn of(applied: Applied) -> Option<Self> {
                match applied {
                    Applied::$kind(answer) => Some(answer),
                    _ => None,
                }
            }
        })*
    };
}

answers!(RangeResponse, TxnResponse, HashKvResponse, LeaseTimeToLiveResponse, LeaseLeasesResponse);
outcomes!(
    PutResponse Put,
    DeleteRangeResponse DeleteRange,
    CompactionResponse Compact,
    LeaseGrantResponse LeaseGrant,
    LeaseRevokeResponse LeaseRevoke,
    AlarmResponse Alarm,
    AddResponse CounterAdd
);

//! What members say to each other.

use openraft::raft::{StreamAppendError, TransferLeaderError, TransferLeaderResponse};

use super::{FormatError, Wire, message as m, required};
use crate::types::{AppendRequest, AppendResult, LogId, TransferRequest, Types, Vote, VoteRequest, VoteResponse};

/// With a number that its answer has, too.
#[derive(Clone, Debug)]
pub(crate) struct Numbered<T> {
    pub(crate) sequence: u64,
    pub(crate) what: T,
}

fn optional<T: Wire>(message: Option<T::Message>) -> Result<Option<T>, FormatError> {
    message.map(T::read).transpose()
}

impl Wire for Numbered<AppendRequest> {
    type Message = m::AppendRequest;

    fn message(&self) -> m::AppendRequest {
        m::AppendRequest {
            sequence: self.sequence,
            vote: Some(self.what.vote.message()),
            previous: self.what.prev_log_id.as_ref().map(Wire::message),
            entries: self.what.entries.iter().map(Wire::message).collect(),
            committed: self.what.leader_commit.as_ref().map(Wire::message),
        }
    }

    fn read(message: m::AppendRequest) -> Result<Self, FormatError> {
        let what = AppendRequest {
            vote: required(message.vote, "a vote")?,
            prev_log_id: optional(message.previous)?,
            entries: message.entries.into_iter().map(Wire::read).collect::<Result<_, _>>()?,
            leader_commit: optional(message.committed)?,
        };
        Ok(Self { sequence: message.sequence, what })
    }
}

impl Wire for Numbered<AppendResult> {
    type Message = m::AppendResponse;

    fn message(&self) -> m::AppendResponse {
        let outcome = match &self.what {
            Ok(upto) => m::append_response::Outcome::Matching(m::Matching { upto: upto.as_ref().map(Wire::message) }),
            Err(StreamAppendError::Conflict(id)) => m::append_response::Outcome::Conflict(id.message()),
            Err(StreamAppendError::HigherVote(vote)) => m::append_response::Outcome::Higher(vote.message()),
        };
        m::AppendResponse { sequence: self.sequence, outcome: Some(outcome) }
    }

    fn read(message: m::AppendResponse) -> Result<Self, FormatError> {
        let what = match message.outcome {
            Some(m::append_response::Outcome::Matching(matching)) => Ok(optional(matching.upto)?),
            Some(m::append_response::Outcome::Conflict(id)) => Err(StreamAppendError::Conflict(LogId::read(id)?)),
            Some(m::append_response::Outcome::Higher(vote)) => Err(StreamAppendError::HigherVote(Vote::read(vote)?)),
            None => return Err(FormatError("an answer that says nothing".into())),
        };
        Ok(Self { sequence: message.sequence, what })
    }
}

/// A question for a vote, or whether one would be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ballot {
    pub(crate) request: VoteRequest,
    pub(crate) is_pre_vote: bool,
}

impl Wire for Ballot {
    type Message = m::VoteRequest;

    fn message(&self) -> m::VoteRequest {
        m::VoteRequest {
            vote: Some(self.request.vote.message()),
            last: self.request.last_log_id.as_ref().map(Wire::message),
            leadership_transfer: self.request.leadership_transfer,
            is_pre_vote: self.is_pre_vote,
        }
    }

    fn read(message: m::VoteRequest) -> Result<Self, FormatError> {
        let mut request = VoteRequest::new(required(message.vote, "a vote")?, optional(message.last)?);
        request.leadership_transfer = message.leadership_transfer;
        Ok(Self { request, is_pre_vote: message.is_pre_vote })
    }
}

impl Wire for VoteResponse {
    type Message = m::VoteResponse;

    fn message(&self) -> m::VoteResponse {
        m::VoteResponse {
            vote: Some(self.vote.message()),
            granted: self.vote_granted,
            last: self.last_log_id.as_ref().map(Wire::message),
        }
    }

    fn read(message: m::VoteResponse) -> Result<Self, FormatError> {
        Ok(Self::new(required::<Vote>(message.vote, "a vote")?, optional(message.last)?, message.granted))
    }
}

impl Wire for TransferRequest {
    type Message = m::TransferRequest;

    fn message(&self) -> m::TransferRequest {
        m::TransferRequest {
            from: Some(self.from_leader().message()),
            to: *self.to_node_id(),
            last: self.last_log_id().map(Wire::message),
        }
    }

    fn read(message: m::TransferRequest) -> Result<Self, FormatError> {
        Ok(Self::new(required(message.from, "a vote")?, message.to, optional(message.last)?))
    }
}

/// A member is told that it has lost entries: to the leader of this vote it had acknowledged all up to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) leader: Vote,
    pub(crate) acknowledged: LogId,
}

impl Wire for Lost {
    type Message = m::Lost;

    fn message(&self) -> m::Lost {
        m::Lost { leader: Some(self.leader.message()), acknowledged: Some(self.acknowledged.message()) }
    }

    fn read(message: m::Lost) -> Result<Self, FormatError> {
        let leader = required(message.leader, "a vote")?;
        Ok(Self { leader, acknowledged: required(message.acknowledged, "an entry")? })
    }
}

/// A snapshot of so many bytes, of which those from here on follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) vote: Vote,
    pub(crate) last: Option<LogId>,
    pub(crate) size: u64,
    pub(crate) from: u64,
}

impl Wire for Offer {
    type Message = m::SnapshotOffer;

    fn message(&self) -> m::SnapshotOffer {
        let last = self.last.as_ref().map(Wire::message);
        m::SnapshotOffer { vote: Some(self.vote.message()), size: self.size, from: self.from, last }
    }

    fn read(message: m::SnapshotOffer) -> Result<Self, FormatError> {
        let m::SnapshotOffer { vote, size, from, last } = message;
        Ok(Self { vote: required(vote, "a vote")?, last: optional(last)?, size, from })
    }
}

/// What a member that was asked to lead did; with what it was asked for it becomes openraft's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TakeOver {
    Done,
    Follows(Vote),
    Behind(Option<LogId>),
}

impl TakeOver {
    pub(crate) fn of(response: TransferLeaderResponse<Types>) -> Self {
        match response {
            Ok(()) => Self::Done,
            Err(TransferLeaderError::VoteChanged { actual, .. }) => Self::Follows(actual),
            Err(TransferLeaderError::LogNotFlushed { actual, .. }) => Self::Behind(actual),
        }
    }

    pub(crate) fn answer(self, request: &TransferRequest) -> TransferLeaderResponse<Types> {
        match self {
            Self::Done => Ok(()),
            Self::Follows(actual) => Err(TransferLeaderError::VoteChanged { expected: *request.from_leader(), actual }),
            Self::Behind(actual) => {
                Err(TransferLeaderError::LogNotFlushed { expected: request.last_log_id().copied(), actual })
            }
        }
    }
}

impl Wire for TakeOver {
    type Message = m::TransferResponse;

    fn message(&self) -> m::TransferResponse {
        use m::transfer_response::Outcome;
        let outcome = match self {
            Self::Done => Outcome::Done(m::Blank {}),
            Self::Follows(vote) => Outcome::Follows(vote.message()),
            Self::Behind(upto) => Outcome::Behind(m::Matching { upto: upto.as_ref().map(Wire::message) }),
        };
        m::TransferResponse { outcome: Some(outcome) }
    }

    fn read(message: m::TransferResponse) -> Result<Self, FormatError> {
        use m::transfer_response::Outcome;
        Ok(match message.outcome {
            Some(Outcome::Done(_)) => Self::Done,
            Some(Outcome::Follows(vote)) => Self::Follows(Vote::read(vote)?),
            Some(Outcome::Behind(matching)) => Self::Behind(optional(matching.upto)?),
            None => return Err(FormatError("an answer that says nothing".into())),
        })
    }
}

//! Entries' ids and votes.

use openraft::vote::RaftLeaderId as _;

use super::{FormatError, Wire, message as m};
use crate::types::{Committed, LeaderId, LogId, Vote};

/// The id of an entry.
pub(crate) fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(Committed::new(term), index)
}

/// The term of an entry.
pub(crate) fn term_of(id: &LogId) -> u64 {
    id.leader_id.term
}

impl Wire for LogId {
    type Message = m::LogId;

    fn message(&self) -> m::LogId {
        m::LogId { term: term_of(self), index: self.index }
    }

    fn read(message: m::LogId) -> Result<Self, FormatError> {
        Ok(log_id(message.term, message.index))
    }
}

impl Wire for Vote {
    type Message = m::Vote;

    fn message(&self) -> m::Vote {
        m::Vote { term: self.leader_id.term, member: self.leader_id.voted_for, committed: self.committed }
    }

    fn read(message: m::Vote) -> Result<Self, FormatError> {
        Ok(Self { leader_id: LeaderId::new(message.term, message.member), committed: message.committed })
    }
}

//! Up to where a reader must wait (raft dissertation, sections 6.4 and 6.4.1).

use std::time::Duration;

use openraft::{
    LinearizerOption,
    async_runtime::watch::WatchReceiver as _,
    errors::{LinearizableReadError, RaftError},
};

use crate::{
    answered::Moment,
    group::{Group, reason},
};

/// Why nobody can say up to where a reader must wait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// This member does not lead.
    #[error("this member does not lead")]
    NotLeader,
    /// No majority has confirmed in time that it does.
    #[error("no majority answered")]
    NoQuorum,
    /// Raft has stopped.
    #[error("raft has stopped: {0}")]
    Stopped(String),
}

impl Group {
    /// The index up to which a reader must wait: this member leads as it is asked, by its [`ReadMode`](crate::ReadMode).
    ///
    /// # Errors
    /// [`ReadError`]
    pub async fn read_index(&self, limit: Duration) -> Result<u64, ReadError> {
        let (began, mut before) = (self.answered.now(), self.newest_answer);
        loop {
            let index = self.confirmed(before, limit).await?;
            if self.is_answered_since((began, before)) {
                return Ok(index);
            }
            // openraft has counted an older answer for more than it was (`answered.rs`): it is asked for a round from now on.
            before = Duration::ZERO;
        }
    }

    async fn confirmed(&self, newest_answer: Duration, limit: Duration) -> Result<u64, ReadError> {
        let round = LinearizerOption::new(Some(newest_answer), true).with_wait_timeout(limit);
        match self.raft.get_read_log_id(round).await {
            Ok((id, _)) => Ok(id.index()),
            Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(_))) => Err(ReadError::NotLeader),
            Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_))) => Err(ReadError::NoQuorum),
            Err(RaftError::Fatal(fatal)) => Err(ReadError::Stopped(reason(&fatal))),
        }
    }

    fn is_answered_since(&self, since: (Moment, Duration)) -> bool {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let voters = metrics.membership_config.membership().get_joint_config();
        self.answered.by_majorities(voters, metrics.id, since)
    }
}

#[cfg(test)]
#[path = "reading_test.rs"]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;

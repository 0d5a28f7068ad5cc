//! What other members ask of this one.

use std::{
    collections::VecDeque,
    future::ready,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream::BoxStream};
use openraft::Snapshot as RaftSnapshot;

use crate::{
    format::{Ballot, Lost, Numbered, TakeOver, Wire, decode, message, required, term_of},
    group::Group,
    peers::Question,
    snapshots::SnapshotFile,
    types::{AppendRequest, AppendResult, TransferRequest, Vote},
};

/// Why a message of another member is not answered.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// It is none.
    #[error("{0}")]
    Damaged(String),
    /// Raft has stopped.
    #[error("raft has stopped: {0}")]
    Stopped(String),
}

fn damaged(error: impl ToString) -> AnswerError {
    AnswerError::Damaged(error.to_string())
}

fn stopped(error: impl ToString) -> AnswerError {
    AnswerError::Stopped(error.to_string())
}

impl Group {
    /// Answers a stream of log entries, in order; it ends with the first that is refused, or is none.
    pub fn append(&self, requests: impl Stream<Item = Bytes> + Send + 'static) -> BoxStream<'static, Bytes> {
        let sequences = Arc::new(Mutex::new(VecDeque::new()));
        let numbers = sequences.clone();
        let read = move |bytes| {
            let read = Numbered::<AppendRequest>::decode(bytes);
            let numbered = read.inspect_err(|error| tracing::warn!(%error, "a damaged append")).ok()?;
            numbers.lock().unwrap_or_else(PoisonError::into_inner).push_back(numbered.sequence);
            Some(numbered.what)
        };
        let write = move |answer: Result<AppendResult, _>| {
            let what = answer.inspect_err(|error| tracing::warn!(%error, "raft has stopped")).ok()?;
            let sequence = sequences.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
            Some(Numbered { sequence, what }.encode())
        };
        let requests = requests.scan((), move |(), bytes| ready(read(bytes)));
        self.raft.stream_append(requests).scan((), move |(), answer| ready(write(answer))).boxed()
    }

    /// Answers a question.
    ///
    /// # Errors
    /// [`AnswerError`]
    pub async fn answer(&self, question: Question) -> Result<Bytes, AnswerError> {
        match question {
            Question::Vote(bytes) => {
                let Ballot { request, is_pre_vote } = Ballot::decode(bytes).map_err(damaged)?;
                let answer = match is_pre_vote {
                    true => self.raft.pre_vote(request).await,
                    false => self.raft.vote(request).await,
                };
                Ok(answer.map_err(stopped)?.encode())
            }
            Question::TakeOver(bytes) => {
                let request = TransferRequest::decode(bytes).map_err(damaged)?;
                let answer = self.raft.handle_transfer_leader(request).await.map_err(stopped)?;
                Ok(TakeOver::of(answer).encode())
            }
            Question::Lost(bytes) => {
                self.end(Lost::decode(bytes).map_err(damaged)?).await?;
                Ok(Bytes::new())
            }
        }
    }

    /// Ends this member, which has lost what it had acknowledged: it must not vote, nor be counted, any more.
    async fn end(&self, Lost { leader, acknowledged }: Lost) -> Result<(), AnswerError> {
        let last = self.raft.with_raft_state(|state| state.log_ids.last().map_or(0, |id| id.index)).await;
        let last = last.map_err(stopped)?;
        if last >= acknowledged.index {
            // It was on its way while the data directory was brought back.
            return Err(AnswerError::Damaged(format!("the log ends at entry {last}, and nothing is lost")));
        }
        let why = format!(
            "its disk has lost the end of its log: it had acknowledged entry {} of term {} to member {:x}, which leads, and \
             its log ends at entry {last} now. The leader has what is missing, the other members go on, and nothing here \
             was changed. Bring the data directory back as it was; or remove the member, empty its data directory and add \
             it again",
            acknowledged.index,
            term_of(&acknowledged),
            leader.leader_id.voted_for,
        );
        // The first to say so has said it.
        let _ = self.ended.set(why);
        let group = self.clone();
        tokio::spawn(async move { group.shutdown().await });
        Ok(())
    }

    /// Installs a snapshot that has come in whole.
    ///
    /// # Errors
    /// [`AnswerError`]
    pub async fn install(&self, offer: Bytes, file: SnapshotFile) -> Result<Bytes, AnswerError> {
        let vote: Vote = read_offer(offer).and_then(|offer| required(offer.vote, "a vote")).map_err(damaged)?;
        let meta = file.meta().map_err(damaged)?;
        let snapshot = RaftSnapshot { meta, snapshot: file };
        let answer = self.raft.install_full_snapshot(vote, snapshot).await.map_err(stopped)?;
        let answer = message::SnapshotResponse { vote: Some(answer.vote.message()) };
        Ok(prost::Message::encode_to_vec(&answer).into())
    }

    /// Where a snapshot goes that comes in, and its size as its sender says it.
    ///
    /// # Errors
    /// The offer is none, or there is no room for it.
    pub fn incoming(&self, offer: Bytes) -> Result<(SnapshotFile, std::fs::File, u64), AnswerError> {
        let size = read_offer(offer).map_err(damaged)?.size;
        let (kept, file) = self.snapshots.incoming().map_err(damaged)?;
        Ok((kept, file, size))
    }
}

fn read_offer(offer: Bytes) -> Result<message::SnapshotOffer, crate::format::FormatError> {
    decode(offer)
}

//! What other members ask of this one.

use std::{
    collections::VecDeque,
    future::ready,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream::BoxStream};
use openraft::{Snapshot as RaftSnapshot, async_runtime::watch::WatchReceiver as _, errors::Fatal};

use crate::{
    arriving::{Arrival, ArrivalError},
    format::{Ballot, Lost, Numbered, Offer, TakeOver, Wire, message, term_of},
    group::{Group, with_causes},
    peers::Question,
    snapshots::SnapshotFile,
    threads::aside,
    types::{AppendRequest, AppendResult, LogId, TransferRequest, Types, Vote, VoteResponse},
};

/// No term is farther ahead of a member that was away: an election a second for a century.
const FARTHEST_TERM: u64 = 1 << 32;

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

/// Whether entries follow what they say that they follow, one by one, and in the order of terms: others have no place in any log.
fn consecutive(request: &AppendRequest) -> Result<(), AnswerError> {
    let mut last = request.prev_log_id.map(|id| (id.index, term_of(&id)));
    for entry in &request.entries {
        let (index, term) = (entry.log_id.index, term_of(&entry.log_id));
        let follows = match last {
            Some((before, of)) => Some(index) == before.checked_add(1) && term >= of,
            None => index == 0,
        };
        if !follows || term > request.vote.leader_id.term {
            return Err(AnswerError::Damaged(format!("entry {index} of term {term} does not follow {last:?}")));
        }
        last = Some((index, term));
    }
    Ok(())
}

impl Group {
    /// Answers a stream of this member's log entries, in order; it ends with the first that is refused, or is none.
    pub fn append(&self, from: u64, requests: impl Stream<Item = Bytes> + Send + 'static) -> BoxStream<'static, Bytes> {
        let sequences = Arc::new(Mutex::new(VecDeque::new()));
        let (numbers, group) = (sequences.clone(), self.clone());
        let read = move |bytes: Bytes| {
            // Entries stay in memory for a while, and with them what they were read from: no more than they take.
            let read = Numbered::<AppendRequest>::decode(Bytes::copy_from_slice(&bytes));
            let numbered = read.inspect_err(|error| tracing::warn!(%error, "a damaged append")).ok()?;
            if let Err(error) = group.plausible(from, &numbered.what.vote) {
                tracing::warn!(%error, "an append that cannot be");
                return None;
            }
            if let Err(error) = consecutive(&numbered.what) {
                tracing::warn!(%error, "an append that cannot be");
                return None;
            }
            if numbered.what.vote.leader_id.term == group.raft_status().borrow().term {
                group.leader_heard.set();
            }
            let conflict = group.conflict(&numbered.what);
            numbers.lock().unwrap_or_else(PoisonError::into_inner).push_back(numbered.sequence);
            Some((numbered.what, conflict))
        };
        let judge = self.clone();
        let write = move |answer: Result<AppendResult, _>| {
            let what = answer.inspect_err(|error| tracing::warn!(%error, "raft has stopped")).ok()?;
            let sequence = sequences.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
            Some(Numbered { sequence, what }.encode())
        };
        let requests = requests.scan((), move |(), bytes| {
            let (read, group) = (read(bytes), judge.clone());
            async move {
                let (request, conflict) = read?;
                match conflict {
                    Some(why) if !group.is_outdated(&request.vote).await => {
                        group.end(why);
                        None
                    }
                    _ => Some(request),
                }
            }
        });
        self.raft.stream_append(requests).scan((), move |(), answer| ready(write(answer))).boxed()
    }

    /// Why this member must not take these entries: they differ from what is committed here, and their leader should have
    /// that (raft paper, section 5.4, leader completeness). One of the two has lost what it had acknowledged, and openraft
    /// takes whatever lies below the commit index for the same. An older leader's may differ ([`Self::is_outdated`]).
    fn conflict(&self, request: &AppendRequest) -> Option<String> {
        let ids = request.prev_log_id.into_iter().chain(request.entries.iter().map(|entry| entry.log_id));
        let committed = |id: &LogId| self.log.committed_at(wal::LogIndex(id.index)).ok().flatten();
        let (id, here) = ids
            .filter_map(|id| Some((id, committed(&id)?)))
            .find(|(id, here)| here.term.0 != term_of(id) && here.term.0 <= request.vote.leader_id.term)?;
        Some(format!(
            "the log of the member that leads in term {} differs from this one's in entry {}, which was committed: it is of \
             term {} there, and of term {} here. One of the two has lost what it had acknowledged; nothing here was changed, \
             and this member may be the only one that has it. Find out which member's data directory was lost or brought back \
             from a copy before any is emptied",
            request.vote.leader_id.term,
            id.index,
            term_of(&id),
            here.term.0,
        ))
    }

    /// Whether raft refuses this leader: this member has voted for a later one, or raft has stopped. What it sends may then differ
    /// from what later ones have committed. Asked of raft itself, and after what is committed was looked at: who told of that leads
    /// in no later term than the answer says.
    async fn is_outdated(&self, leader: &Vote) -> bool {
        let own = self.raft.with_raft_state(|state| state.vote_ref().leader_id.term).await;
        // One that has stopped takes nothing any more: it ends for another reason.
        own.map_or(true, |own| leader.leader_id.term < own)
    }

    /// Whether a vote can be that of the member that sends it. One term follows another: one that is far ahead would be
    /// taken over by all, and leave none that could follow.
    fn plausible(&self, from: u64, vote: &Vote) -> Result<(), AnswerError> {
        let (candidate, term) = (vote.leader_id.voted_for, vote.leader_id.term);
        if candidate != from {
            return Err(AnswerError::Damaged(format!("member {from:x} sends a vote for member {candidate:x}")));
        }
        let own = self.raft_status().borrow().term;
        match term > own.saturating_add(FARTHEST_TERM) {
            true => Err(AnswerError::Damaged(format!(
                "term {term} is out of reach from term {own}, which is this member's"
            ))),
            false => Ok(()),
        }
    }

    /// Answers a question of this member.
    ///
    /// # Errors
    /// [`AnswerError`]
    pub async fn answer(&self, from: u64, question: Question) -> Result<Bytes, AnswerError> {
        match question {
            Question::Vote(bytes) => {
                let Ballot { request, is_pre_vote } = Ballot::decode(bytes).map_err(damaged)?;
                self.plausible(from, &request.vote)?;
                let answer = match (self.promise.forbids(&request), is_pre_vote) {
                    (true, _) => self.refusal().await.map_err(stopped),
                    (false, true) => self.raft.pre_vote(request).await.map_err(stopped),
                    (false, false) => self.raft.vote(request).await.map_err(stopped),
                };
                Ok(answer?.encode())
            }
            Question::TakeOver(bytes) => {
                let request = TransferRequest::decode(bytes).map_err(damaged)?;
                self.plausible(from, request.from_leader())?;
                let answer = self.raft.handle_transfer_leader(request).await.map_err(stopped)?;
                Ok(TakeOver::of(answer).encode())
            }
            Question::Lost(bytes) => {
                let lost = Lost::decode(bytes).map_err(damaged)?;
                self.plausible(from, &lost.leader)?;
                self.hear_of_loss(lost).await?;
                Ok(Bytes::new())
            }
            Question::Held(bytes) => {
                let bytes = self.arriving.held(from, &self.offered(from, bytes)?);
                Ok(prost::Message::encode_to_vec(&message::SnapshotHeld { bytes }).into())
            }
        }
    }

    /// No vote.
    async fn refusal(&self) -> Result<VoteResponse, Fatal<Types>> {
        let standing = |state: &openraft::RaftState<Types>| (*state.vote_ref(), state.log_ids.last().copied());
        let (vote, last) = self.raft.with_raft_state(standing).await?;
        Ok(VoteResponse::new(vote, last, false))
    }

    /// Whether this is the vote of who leads here.
    fn follows(&self, leader: &Vote) -> bool {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let of = leader.leader_id;
        (metrics.current_leader, metrics.current_term) == (Some(of.voted_for), of.term)
    }

    /// Ends this member, which has lost what it had acknowledged: it must not vote, nor be counted, any more.
    async fn hear_of_loss(&self, Lost { leader, acknowledged }: Lost) -> Result<(), AnswerError> {
        let is_of = leader.leader_id;
        if !self.follows(&leader) {
            return Err(AnswerError::Damaged(format!(
                "member {:x} does not lead here in term {}",
                is_of.voted_for, is_of.term
            )));
        }
        let last = self.last_index().await.map_err(|error| AnswerError::Stopped(with_causes(&error)))?;
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
        self.end(why);
        Ok(())
    }

    /// Ends this member, which must not go on, with this reason.
    pub fn end(&self, why: String) {
        // The first to say so has said it.
        let _ = self.ended.set(why);
        let group = self.clone();
        tokio::spawn(async move { group.shutdown().await });
    }

    /// Reads a snapshot that has come in whole, and installs it. One that is damaged is the leader's to mend: it is told.
    ///
    /// # Errors
    /// [`AnswerError`]
    pub async fn install(&self, offer: Bytes, mut file: SnapshotFile) -> Result<Bytes, AnswerError> {
        let vote = Offer::decode(offer).map_err(damaged)?.vote;
        let machine = self.machine.clone();
        let read = aside(move || file.read_in(&machine).map(|(meta, restored)| (meta, restored, file))).await;
        let answer = match read.map_err(damaged)? {
            Ok((meta, restored, mut file)) => {
                file.restored = Some(restored);
                let snapshot = RaftSnapshot { meta, snapshot: file };
                let answer = self.raft.install_full_snapshot(vote, snapshot).await.map_err(stopped)?;
                message::SnapshotResponse { vote: Some(answer.vote.message()), damage: String::new() }
            }
            Err(error) => {
                let damage = with_causes(&error);
                tracing::error!(damage, "a snapshot that the leader sent cannot be used; nothing of it was taken");
                message::SnapshotResponse { vote: None, damage }
            }
        };
        Ok(prost::Message::encode_to_vec(&answer).into())
    }

    /// Where a snapshot goes that comes in.
    ///
    /// # Errors
    /// The offer is none, or not that of this member, or there is no room for it.
    pub fn incoming(&self, from: u64, offer: Bytes) -> Result<Arrival, AnswerError> {
        let offer = self.offered(from, offer)?;
        let arrival = self.arriving.begin(from, &offer, || Ok(self.snapshots.incoming()?.read_by(&self.machine)));
        let arrival = arrival.map_err(|error: ArrivalError| AnswerError::Damaged(with_causes(&error)))?;
        let Offer { size, from, .. } = offer;
        // A disk that is full has it begin twice a second.
        match arrival.is_again {
            true => tracing::debug!(size, from, "takes in the same snapshot again"),
            false => tracing::info!(
                size,
                from,
                "takes in a snapshot: the leader no longer has the entries that are missing here"
            ),
        }
        Ok(arrival)
    }

    fn offered(&self, from: u64, offer: Bytes) -> Result<Offer, AnswerError> {
        let offer = Offer::decode(offer).map_err(damaged)?;
        self.plausible(from, &offer.vote)?;
        Ok(offer)
    }
}

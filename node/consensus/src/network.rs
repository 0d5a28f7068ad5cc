//! openraft's calls to other members, as messages that [`Peers`] carries.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, future::BoxFuture, stream, stream::BoxStream};
use openraft::{
    BasicNode, RaftNetworkFactory, RaftNetworkV2,
    errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable},
    network::{Backoff, RPCOption},
    raft::{SnapshotResponse, StreamAppendError, TransferLeaderResponse},
};
use tokio::sync::mpsc;

use crate::{
    acknowledged::Known,
    answered::{Answered, Moment, OfMember},
    format::{Ballot, FormatError, Lost, Numbered, Offer, TakeOver, Wire, decode, message, required},
    peers::{Lane, Outgoing, Peer, PeerError, Peers, Pipe, Question},
    promise::Promise,
    schedule::{Schedule, Transfer},
    snapshots::SnapshotFile,
    types::{AppendRequest, AppendResult, LogId, Snapshot, TransferRequest, Types, Vote, VoteRequest, VoteResponse},
};

type Failed = RPCError<Types>;
type Answers<'s> = BoxStream<'s, Result<AppendResult, Failed>>;

/// As many appends are under way on a stream at once.
const WINDOW: usize = 64;
/// Between two tries to reach a member that is away: soon, as one that is restarted is away for a moment only.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Before a snapshot is sent again to a member that could not take or use it: it may be large.
const UNUSABLE_INTERVAL: Duration = Duration::from_secs(1);

/// Makes the connections.
#[derive(Clone)]
pub struct Network {
    peers: Arc<dyn Peers>,
    /// An append without an answer for so long is lost.
    patience: Duration,
    answered: Answered,
    /// Of this member, for when it stands for election.
    promise: Promise,
    schedule: Arc<Schedule>,
}

impl Network {
    /// Over this carrier.
    pub(crate) fn new(
        peers: Arc<dyn Peers>,
        patience: Duration,
        answered: Answered,
        promise: Promise,
        schedule: Arc<Schedule>,
    ) -> Self {
        Self { peers, patience, answered, promise, schedule }
    }

    fn connection(&self, id: u64, node: &BasicNode, lane: Lane) -> Connection {
        let peer = Peer { id, address: node.addr.clone() };
        let answered = self.answered.of(id);
        Connection { network: self.clone(), peer, lane, pipe: Mutex::default(), sequence: 0, answered }
    }
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Connection;

    async fn new_client(&mut self, id: u64, node: &BasicNode) -> Connection {
        self.connection(id, node, Lane::Entries)
    }

    /// The first that openraft asks for when this member begins to lead, or another is added, and from then on there is no
    /// other for as long as both lasts: what was answered before is forgotten.
    async fn new_heartbeat_client(&mut self, id: u64, node: &BasicNode) -> Connection {
        self.answered.forget(id);
        self.connection(id, node, Lane::Heartbeats)
    }
}

/// A connection to one member.
pub struct Connection {
    network: Network,
    peer: Peer,
    lane: Lane,
    /// Stays open from one call to the next: a heartbeat is a call of its own. Nobody ever waits for the lock; a stream
    /// can be shared in no other way.
    pipe: Mutex<Option<Pipe>>,
    sequence: u64,
    answered: OfMember,
}

fn failed(error: PeerError) -> Failed {
    match error {
        PeerError::Unreachable(why) => Unreachable::from_string(why).into(),
        PeerError::Broken(why) => NetworkError::from_string(why).into(),
    }
}

fn damaged(error: FormatError) -> Failed {
    NetworkError::new(&error).into()
}

impl Connection {
    fn kept(&mut self) -> &mut Option<Pipe> {
        self.pipe.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask<T: Wire>(&self, question: Question, option: &RPCOption) -> Result<T, Failed> {
        let answer = self.network.peers.ask(self.peer.clone(), question, option.hard_ttl()).await;
        T::decode(answer.map_err(failed)?).map_err(damaged)
    }

    async fn vote_or_pre_vote(
        &self,
        request: VoteRequest,
        is_pre_vote: bool,
        option: RPCOption,
    ) -> Result<VoteResponse, Failed> {
        self.network.promise.is_over_for(&request).await;
        self.ask(Question::Vote(Ballot { request, is_pre_vote }.encode()), &option).await
    }

    /// Sends what comes in as it comes, and gives the answers as they come, until nothing comes in any more and all is
    /// answered. The stream to the member is kept for the next time where it ended well.
    async fn append<'s, S>(&'s mut self, mut input: S) -> Result<Answers<'s>, Failed>
    where
        S: Stream<Item = AppendRequest> + Send + Unpin + 'static,
    {
        // First something to say, then a connection: else a leader would dial a dead member round and round.
        let Some(first) = input.next().await else { return Ok(stream::empty().boxed()) };
        let pipe = match self.kept().take() {
            Some(pipe) => pipe,
            None => self.network.peers.pipe(self.peer.clone(), self.lane).await.map_err(failed)?,
        };
        let (vote, known) = (first.vote, self.answered.acknowledged.known());
        let first_sequence = self.sequence + 1;
        let (sent, is_sent) = mpsc::channel(WINDOW);
        let sending = tokio::spawn(send(
            stream::once(std::future::ready(first)).chain(input),
            pipe.send.clone(),
            (first_sequence, self.network.answered.clone()),
            sent,
        ));
        let exchange = Exchange { connection: self, pipe, is_sent, vote, known, _sending: Sending(sending) };
        Ok(stream::unfold(Some(exchange), |exchange| async { exchange?.next().await }).boxed())
    }

    /// Where a transfer of this snapshot begins: behind what the last one brought.
    async fn held(&self, offer: &Offer) -> Result<u64, PeerError> {
        let question = Question::Held(offer.encode());
        let answer = self.network.peers.ask(self.peer.clone(), question, self.network.patience).await?;
        let held = decode::<message::SnapshotHeld>(answer).map_err(|error| PeerError::Broken(error.to_string()))?.bytes;
        Ok(if held < offer.size { held } else { 0 })
    }

    /// What openraft hears of a member that lacks an entry. One that has lost it is away until its data is back, or another
    /// leads: openraft never takes back what it counts as acknowledged.
    async fn lacking(&self, lacks: LogId, lost: Option<Lost>) -> Result<AppendResult, Failed> {
        let Some(lost) = lost else { return Ok(Err(StreamAppendError::Conflict(lacks))) };
        let Self { network, peer, .. } = self;
        let text = format!("member {:x} has lost the end of its log, up to what it had acknowledged", peer.id);
        match network.peers.ask(peer.clone(), Question::Lost(lost.encode()), network.patience).await {
            Ok(_) => {
                tracing::error!(lacks = lacks.index, acknowledged = lost.acknowledged.index, "{text}: it has to end")
            }
            Err(error) => tracing::debug!(%error, "{text}, and cannot be told"),
        }
        Err(failed(PeerError::Unreachable(text)))
    }
}

/// The task that sends; it ends with this value.
struct Sending(tokio::task::JoinHandle<()>);

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends requests and notes each, with the moment, before it is sent.
async fn send(
    mut input: impl Stream<Item = AppendRequest> + Unpin,
    pipe: mpsc::Sender<Bytes>,
    (first, answered): (u64, Answered),
    sent: mpsc::Sender<(u64, Moment)>,
) {
    let mut sequence = first;
    while let Some(what) = input.next().await {
        let bytes = Numbered { sequence, what }.encode();
        if sent.send((sequence, answered.now())).await.is_err() || pipe.send(bytes).await.is_err() {
            return;
        }
        sequence += 1;
    }
}

/// Requests and answers on one stream.
struct Exchange<'s> {
    connection: &'s mut Connection,
    pipe: Pipe,
    is_sent: mpsc::Receiver<(u64, Moment)>,
    /// In which this member leads.
    vote: Vote,
    /// What the member had acknowledged before anything was sent here.
    known: Known,
    /// Ends with the exchange.
    _sending: Sending,
}

impl<'s> Exchange<'s> {
    /// The next answer, and what is left of the exchange; nothing is left after an error.
    async fn next(mut self) -> Option<(Result<AppendResult, Failed>, Option<Self>)> {
        let Some((sequence, moment)) = self.is_sent.recv().await else {
            *self.connection.kept() = Some(self.pipe);
            return None;
        };
        self.connection.sequence = sequence;
        match self.answer(sequence).await {
            Ok(Ok(matching)) => {
                self.connection.answered.note(moment);
                if let Some(upto) = matching {
                    self.connection.answered.acknowledged.note(self.vote, upto);
                }
                Some((Ok(Ok(matching)), Some(self)))
            }
            Ok(Err(StreamAppendError::Conflict(lacks))) => {
                let lost = self.known.lost(self.vote, lacks);
                Some((self.connection.lacking(lacks, lost).await, None))
            }
            other => Some((other, None)),
        }
    }

    async fn answer(&mut self, sequence: u64) -> Result<AppendResult, Failed> {
        loop {
            let answer = tokio::time::timeout(self.connection.network.patience, self.pipe.receive.next()).await;
            let broken = |why: &str| failed(PeerError::Broken(format!("member {:x} {why}", self.connection.peer.id)));
            let answer = answer.map_err(|_| broken("does not answer"))?.ok_or_else(|| broken("hung up"))?;
            let answer = Numbered::<AppendResult>::decode(answer.map_err(failed)?).map_err(damaged)?;
            // An exchange that was given up may have left its answers behind.
            if answer.sequence == sequence {
                return Ok(answer.what);
            }
        }
    }
}

/// A size for people.
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

impl RaftNetworkV2<Types> for Connection {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        request: AppendRequest,
        _: RPCOption,
    ) -> Result<openraft::raft::AppendEntriesResponse<Types>, Failed> {
        let mut answers = self.append(stream::iter([request])).await?;
        let answer = answers.next().await.ok_or_else(|| failed(PeerError::Broken("no answer".into())))?;
        answer.map(Into::into)
    }

    fn stream_append<'s, S>(&'s mut self, input: S, _: RPCOption) -> BoxFuture<'s, Result<Answers<'s>, Failed>>
    where
        S: Stream<Item = AppendRequest> + Send + Unpin + 'static,
    {
        Box::pin(self.append(input))
    }

    async fn vote(&mut self, request: VoteRequest, option: RPCOption) -> Result<VoteResponse, Failed> {
        self.vote_or_pre_vote(request, false, option).await
    }

    async fn pre_vote(&mut self, request: VoteRequest, option: RPCOption) -> Result<VoteResponse, Failed> {
        self.vote_or_pre_vote(request, true, option).await
    }

    async fn transfer_leader(
        &mut self,
        request: TransferRequest,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, Failed> {
        let answer: TakeOver = self.ask(Question::TakeOver(request.encode()), &option).await?;
        Ok(answer.answer(&request))
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let broken = |why: String| StreamingError::Network(NetworkError::from_string(why));
        let mut file = snapshot.snapshot.open().map_err(|error| broken(error.to_string()))?;
        let offer = Offer { vote, last: snapshot.meta.last_log_id, size: file.length(), from: 0 };
        let (bytes, snapshot_index) = (offer.size, offer.last.map_or(0, |id| id.index));
        let (remote_peer_id, size) = (format!("{:x}", self.peer.id), megabytes(bytes));
        let sending = async {
            // openraft tries again and again while the member is away.
            let from = self.held(&offer).await?;
            tracing::info!(snapshot_index, remote_peer_id, bytes, size, "sending database snapshot");
            let transfer = Transfer::begin(&self.network.schedule);
            file.skip_bytes(from);
            let offer = Offer { from, ..offer }.encode();
            let answer = self.network.peers.send_snapshot(self.peer.clone(), Outgoing { offer, file }).await;
            if answer.is_err() {
                transfer.breaks_off();
            }
            answer
        };
        let answer = tokio::select! {
            closed = cancel => return Err(closed.into()),
            answer = tokio::time::timeout(option.hard_ttl(), sending) => answer,
        };
        let answer = answer.map_err(|_| broken("the snapshot was not installed in time".into()))?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(PeerError::Unreachable(why)) => {
                return Err(StreamingError::Unreachable(Unreachable::from_string(why)));
            }
            Err(PeerError::Broken(why)) => {
                // Such as a disk that is full: it says so itself.
                tokio::time::sleep(UNUSABLE_INTERVAL).await;
                return Err(broken(why));
            }
        };
        let answer = decode::<message::SnapshotResponse>(answer).map_err(|error| broken(error.to_string()))?;
        if !answer.damage.is_empty() {
            let damage = answer.damage;
            tracing::warn!(
                member = format!("{:x}", self.peer.id),
                damage,
                "a member cannot use a snapshot that it was sent"
            );
            // Before it is sent again, it is read here.
            snapshot.snapshot.doubt(true);
            tokio::time::sleep(UNUSABLE_INTERVAL).await;
            return Err(broken(damage));
        }
        let vote = required(answer.vote, "a vote");
        tracing::info!(snapshot_index, remote_peer_id, bytes, size, "sent database snapshot");
        Ok(SnapshotResponse::new(vote.map_err(|error| broken(error.to_string()))?))
    }

    fn backoff(&self) -> Option<Backoff> {
        Some(Backoff::new(std::iter::repeat(RETRY_INTERVAL)))
    }
}

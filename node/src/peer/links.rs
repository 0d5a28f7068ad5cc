//! Calls to other members. Each is reached over two connections, so that a snapshot never holds up a heartbeat.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use consensus::{Outgoing, Peer, PeerError, Peers, Pipe, Question};
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use proto::MemberId;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Code, Response, Status, Streaming,
    transport::{Channel, Endpoint},
};

use super::{
    Handshake, MAX_MESSAGE, Remote,
    dial::Dial,
    log_throttle::LogThrottle,
    wire::{self, Frame, peer_client::PeerClient},
};

/// A host that does not answer at all is given up after this.
const CONNECT: Duration = Duration::from_secs(1);
/// A connection on which nothing comes back for so long is dead.
const ALIVE: Duration = Duration::from_secs(2);
/// As many messages wait to be sent on a stream.
const WINDOW: usize = 64;
/// A snapshot goes in pieces of this size, in bytes.
const PIECE: usize = 1 << 20;

type Client = PeerClient<Channel>;

/// The connections of a member. Every clone is the same.
#[derive(Clone)]
pub struct Links {
    handshake: Handshake,
    log_throttle: Arc<LogThrottle>,
    open: Arc<Mutex<BTreeMap<(u64, String), Link>>>,
}

#[derive(Clone)]
struct Link {
    raft: Client,
    other: Client,
}

fn broken(status: &Status) -> PeerError {
    let text = status.message().to_owned();
    match status.code() {
        Code::Unavailable | Code::FailedPrecondition => PeerError::Unreachable(text),
        _ => PeerError::Broken(text),
    }
}

impl Links {
    /// For a member that shakes hands so.
    pub fn new(handshake: Handshake) -> Self {
        Self { handshake, log_throttle: Arc::default(), open: Arc::default() }
    }

    /// A connection for what is not raft's.
    pub(crate) fn other(&self, peer: &Peer) -> Result<Client, Status> {
        self.link(peer).map(|link| link.other).map_err(|error| Status::unavailable(error.to_string()))
    }

    pub(crate) fn call<T>(&self, to: u64, message: T) -> tonic::Request<T> {
        self.handshake.call(MemberId(to), message)
    }

    pub(crate) fn answerer<T>(&self, called: u64, response: &Response<T>) -> Result<Remote, Status> {
        self.handshake.answerer(MemberId(called), response.metadata())
    }

    /// What came of a call; a refusal is told, as nothing but a person mends that.
    fn outcome<T>(&self, outcome: Result<T, Status>) -> Result<T, PeerError> {
        outcome.map_err(|status| {
            if status.code() == Code::FailedPrecondition {
                self.log_throttle.say("another member is not the one that --initial-cluster says", status.message());
            }
            broken(&status)
        })
    }

    fn link(&self, peer: &Peer) -> Result<Link, PeerError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = open.get(&(peer.id, peer.address.clone())) {
            return Ok(link.clone());
        }
        let link = Link { raft: client(&peer.address)?, other: client(&peer.address)? };
        open.insert((peer.id, peer.address.clone()), link.clone());
        Ok(link)
    }

    async fn append(self, to: Peer) -> Result<Pipe, Status> {
        let mut client = self.link(&to).map_err(|error| Status::unavailable(error.to_string()))?.raft;
        let (send, sent) = mpsc::channel::<Bytes>(WINDOW);
        let frames = ReceiverStream::new(sent).map(|bytes| Frame { bytes });
        let response = client.append(self.call(to.id, frames)).await?;
        self.answerer(to.id, &response)?;
        let receive = response.into_inner().map(|frame| frame.map(|frame| frame.bytes).map_err(|e| broken(&e)));
        Ok(Pipe { send, receive: receive.boxed() })
    }

    async fn question(self, to: Peer, question: Question) -> Result<Bytes, Status> {
        let mut client = self.link(&to).map_err(|error| Status::unavailable(error.to_string()))?.raft;
        let what = match question {
            Question::Vote(bytes) => wire::question::What::Vote(bytes),
            Question::TakeOver(bytes) => wire::question::What::TakeOver(bytes),
            Question::Lost(bytes) => wire::question::What::Lost(bytes),
        };
        let response = client.ask(self.call(to.id, wire::Question { what: Some(what) })).await?;
        self.answerer(to.id, &response)?;
        Ok(response.into_inner().bytes)
    }

    async fn snapshot(self, to: Peer, snapshot: Outgoing) -> Result<Bytes, Status> {
        let mut client = self.other(&to)?;
        let (send, sent) = mpsc::channel(2);
        let reading = tokio::task::spawn_blocking(move || read(snapshot, &send));
        let response = client.install(self.call(to.id, ReceiverStream::new(sent))).await?;
        self.answerer(to.id, &response)?;
        // What was not read was not sent, and then the answer is no success.
        reading.await.map_err(|error| Status::internal(error.to_string()))??;
        Ok(response.into_inner().bytes)
    }
}

fn read(snapshot: Outgoing, send: &mpsc::Sender<Frame>) -> Result<(), Status> {
    let Outgoing { offer, mut file } = snapshot;
    let gone = |_| Status::unavailable("the member took no more of the snapshot");
    send.blocking_send(Frame { bytes: offer }).map_err(gone)?;
    while let Some(bytes) = piece(&mut file).map_err(|error| Status::internal(error.to_string()))? {
        send.blocking_send(Frame { bytes }).map_err(gone)?;
    }
    Ok(())
}

fn piece(file: &mut File) -> std::io::Result<Option<Bytes>> {
    let mut bytes = Vec::with_capacity(PIECE);
    let length = file.take(PIECE as u64).read_to_end(&mut bytes)?;
    Ok((length > 0).then(|| bytes.into()))
}

/// Connects when it is first used, and again whenever the connection is lost.
fn client(address: &str) -> Result<Client, PeerError> {
    let first = address.split(',').next().unwrap_or_default().to_owned();
    let endpoint = Endpoint::from_shared(first).map_err(|error| PeerError::Broken(error.to_string()))?;
    let dial = Dial::new(address).map_err(|error| PeerError::Broken(error.to_string()))?;
    let channel = endpoint
        .connect_timeout(CONNECT)
        .http2_keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(8 << 20)
        .connect_with_connector_lazy(dial);
    Ok(PeerClient::new(channel).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE))
}

async fn within<T>(limit: Duration, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let late = |_| Status::deadline_exceeded(format!("no answer within {} ms", limit.as_millis()));
    tokio::time::timeout(limit, call).await.map_err(late)?
}

impl Peers for Links {
    fn pipe(&self, to: Peer) -> BoxFuture<'static, Result<Pipe, PeerError>> {
        let links = self.clone();
        async move { links.outcome(within(2 * CONNECT, links.clone().append(to)).await) }.boxed()
    }

    fn ask(&self, to: Peer, question: Question, limit: Duration) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        let links = self.clone();
        async move { links.outcome(within(limit, links.clone().question(to, question)).await) }.boxed()
    }

    fn send_snapshot(&self, to: Peer, snapshot: Outgoing) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        let links = self.clone();
        async move { links.outcome(links.clone().snapshot(to, snapshot).await) }.boxed()
    }
}

pub(super) fn frames(streaming: Streaming<Frame>) -> impl futures_util::Stream<Item = Result<Bytes, Status>> + Send {
    streaming.map(|frame| frame.map(|frame| frame.bytes))
}

//! How messages get to other members: whoever carries them does so as bytes, and says which connection it is.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream::BoxStream};
use tokio::sync::mpsc;

/// Another member and where it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its id.
    pub id: u64,
    /// Its peer URLs, with commas between.
    pub address: String,
}

/// Why a message did not get through, or its answer back.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PeerError {
    /// It cannot be reached; trying again at once is of no use.
    #[error("{0}")]
    Unreachable(String),
    /// The connection broke, or the answer did not come in time.
    #[error("{0}")]
    Broken(String),
}

/// A question that is answered once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// For a vote.
    Vote(Bytes),
    /// To take over as leader.
    TakeOver(Bytes),
    /// None: it has lost entries that it had acknowledged, and must end.
    Lost(Bytes),
    /// How much it has of a snapshot whose last transfer broke off.
    Held(Bytes),
}

/// What a stream is for: what keeps a leader in its place must not wait behind what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Heartbeats alone.
    Heartbeats,
    /// Log entries.
    Entries,
}

/// An open stream of messages to a member, and of its answers in the same order.
pub struct Pipe {
    /// To it.
    pub send: mpsc::Sender<Bytes>,
    /// From it; it ends with the first error.
    pub receive: BoxStream<'static, Result<Bytes, PeerError>>,
}

/// A snapshot on its way.
#[derive(Debug)]
pub struct Outgoing {
    /// What goes before it.
    pub offer: Bytes,
    /// Its bytes, behind those that the member has.
    pub file: disk::Reader,
}

/// What carries messages to other members.
pub trait Peers: Send + Sync + 'static {
    /// Opens a stream.
    fn pipe(&self, to: Peer, lane: Lane) -> BoxFuture<'static, Result<Pipe, PeerError>>;

    /// Asks a question, beside heartbeats; the answer comes within the limit, or an error.
    fn ask(&self, to: Peer, question: Question, limit: Duration) -> BoxFuture<'static, Result<Bytes, PeerError>>;

    /// Sends a snapshot; the answer comes when it is installed.
    fn send_snapshot(&self, to: Peer, snapshot: Outgoing) -> BoxFuture<'static, Result<Bytes, PeerError>>;
}

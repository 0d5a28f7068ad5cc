//! Raft's things as messages of our own, and back: what is in the log, in snapshots and on the wire does not change with
//! openraft. Whatever the bytes are, the answer is a value or an error.

mod command;
mod fuzzing;
mod ids;
mod logged;
mod membership;
mod wire;

use bytes::Bytes;
use prost::Message;

pub use command::Command;
pub use fuzzing::fuzz;
pub(crate) use ids::{log_id, term_of};
pub(crate) use logged::{decode_payload, encode_payload};
pub(crate) use wire::{Ballot, Lost, Numbered, Offer, TakeOver};

/// The messages of `proto/raft.proto`.
#[allow(missing_docs, clippy::all)]
pub(crate) mod message {
    include!(concat!(env!("OUT_DIR"), "/baton.raft.rs"));
}

/// Bytes or a message that no member writes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a damaged message of a member: {0}")]
pub struct FormatError(pub(crate) String);

/// A value that has a message.
pub(crate) trait Wire: Sized {
    /// Its message.
    type Message: Message + Default;

    /// Its message.
    fn message(&self) -> Self::Message;

    /// From its message.
    fn read(message: Self::Message) -> Result<Self, FormatError>;

    /// Its bytes.
    fn encode(&self) -> Bytes {
        self.message().encode_to_vec().into()
    }

    /// From bytes.
    fn decode(bytes: Bytes) -> Result<Self, FormatError> {
        Self::read(decode(bytes)?)
    }
}

/// A message from bytes.
pub(crate) fn decode<M: Message + Default>(bytes: Bytes) -> Result<M, FormatError> {
    M::decode(bytes).map_err(|error| FormatError(error.to_string()))
}

/// A part that must be there.
pub(crate) fn required<T: Wire>(message: Option<T::Message>, what: &'static str) -> Result<T, FormatError> {
    T::read(message.ok_or_else(|| FormatError(format!("{what} is missing")))?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod format_test;

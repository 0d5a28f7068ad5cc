//! What an entry tells the state machine, as it is written.

use std::fmt;

use bytes::Bytes;
use prost::{Message, encoding::key_len};

use super::message as m;

/// What an entry tells the state machine; nobody here looks into it. It holds the entry's whole payload as the log and the messages
/// to other members have it: that is encoded once, by whoever proposes it, and not again for each of them.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    payload: Bytes,
    /// Where the command begins; it goes on to the end.
    at: usize,
}

impl Command {
    /// The field of [`m::payload::What::Command`].
    const FIELD: u32 = 2;

    /// Writes it.
    pub fn new(command: Bytes) -> Self {
        let length = command.len();
        let payload: Bytes = m::Payload { what: Some(m::payload::What::Command(command)) }.encode_to_vec().into();
        Self { at: payload.len() - length, payload }
    }

    /// With what was read of these bytes. Bytes that say the same in another way are not kept: equal entries have equal bytes.
    pub(super) fn read(payload: Bytes, command: Bytes) -> Self {
        let written = key_len(Self::FIELD) + prost::length_delimiter_len(command.len()) + command.len();
        if payload.len() != written {
            return Self::new(command);
        }
        Self { at: payload.len() - command.len(), payload }
    }

    /// The payload.
    pub(super) fn payload(&self) -> Bytes {
        self.payload.clone()
    }

    /// Itself.
    pub fn bytes(&self) -> Bytes {
        self.payload.slice(self.at..)
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.payload.len() - self.at)
    }
}

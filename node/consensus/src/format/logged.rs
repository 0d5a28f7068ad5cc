//! What an entry of the log says.

use bytes::Bytes;
use prost::Message;

use super::{Command, FormatError, Wire, decode, log_id, message as m};
use crate::types::{Entry, Payload};

fn encode(payload: &Payload) -> Bytes {
    let what = match payload {
        Payload::Normal(command) => return command.payload(),
        Payload::Blank => m::payload::What::Blank(m::Blank {}),
        Payload::Membership(membership) => m::payload::What::Membership(membership.message()),
    };
    m::Payload { what: Some(what) }.encode_to_vec().into()
}

/// Nothing is copied.
fn read(bytes: Bytes) -> Result<Payload, FormatError> {
    Ok(match decode::<m::Payload>(bytes.clone())?.what {
        Some(m::payload::What::Blank(_)) => Payload::Blank,
        Some(m::payload::What::Command(command)) => Payload::Normal(Command::read(bytes, command)),
        Some(m::payload::What::Membership(membership)) => Payload::Membership(Wire::read(membership)?),
        None => return Err(FormatError("an entry that says nothing".into())),
    })
}

/// An entry as the log has it.
pub(crate) fn encode_payload(entry: &Entry) -> wal::Entry {
    let id = wal::EntryId {
        term: wal::Term(entry.log_id.leader_id.term),
        // A term has one leader: the log need not say which.
        leader: 0,
        index: wal::LogIndex(entry.log_id.index),
    };
    wal::Entry { id, payload: encode(&entry.payload) }
}

/// An entry from the log. What is applied is one with what the log holds in memory anyway.
pub(crate) fn decode_payload(entry: wal::Entry) -> Result<Entry, FormatError> {
    Ok(Entry { log_id: log_id(entry.id.term.0, entry.id.index.0), payload: read(entry.payload)? })
}

impl Wire for Entry {
    type Message = m::Entry;

    fn message(&self) -> m::Entry {
        m::Entry { id: Some(self.log_id.message()), payload: encode(&self.payload) }
    }

    fn read(message: m::Entry) -> Result<Self, FormatError> {
        Ok(Self { log_id: super::required(message.id, "an entry's id")?, payload: read(message.payload)? })
    }
}

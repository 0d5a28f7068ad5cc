//! What an entry of the log says.

use prost::Message;

use super::{FormatError, Wire, decode, log_id, message as m};
use crate::types::{Command, Entry, Payload};

impl Wire for Payload {
    type Message = m::Payload;

    fn message(&self) -> m::Payload {
        let what = match self {
            Self::Blank => m::payload::What::Blank(m::Blank {}),
            Self::Normal(command) => m::payload::What::Command(command.0.clone()),
            Self::Membership(membership) => m::payload::What::Membership(membership.message()),
        };
        m::Payload { what: Some(what) }
    }

    fn read(message: m::Payload) -> Result<Self, FormatError> {
        Ok(match message.what {
            Some(m::payload::What::Blank(_)) => Self::Blank,
            Some(m::payload::What::Command(bytes)) => Self::Normal(Command(bytes)),
            Some(m::payload::What::Membership(membership)) => Self::Membership(Wire::read(membership)?),
            None => return Err(FormatError("an entry that says nothing".into())),
        })
    }
}

/// An entry as the log has it.
pub(crate) fn encode_payload(entry: &Entry) -> wal::Entry {
    let id = wal::EntryId {
        term: wal::Term(entry.log_id.leader_id.term),
        // A term has one leader: the log need not say which.
        leader: 0,
        index: wal::LogIndex(entry.log_id.index),
    };
    wal::Entry { id, payload: entry.payload.message().encode_to_vec().into() }
}

/// An entry from the log.
pub(crate) fn decode_payload(entry: wal::Entry) -> Result<Entry, FormatError> {
    // Not copied: what is applied is one with what the log holds in memory anyway.
    let payload = Payload::read(decode(entry.payload)?)?;
    Ok(Entry { log_id: log_id(entry.id.term.0, entry.id.index.0), payload })
}

impl Wire for Entry {
    type Message = m::Entry;

    fn message(&self) -> m::Entry {
        m::Entry { id: Some(self.log_id.message()), payload: self.payload.message().encode_to_vec().into() }
    }

    fn read(message: m::Entry) -> Result<Self, FormatError> {
        let payload = Payload::read(decode(message.payload)?)?;
        Ok(Self { log_id: super::required(message.id, "an entry's id")?, payload })
    }
}

//! A checksum on what members say to each other. TCP's has sixteen bits: an entry that was changed on its way would be another
//! here than with all others, for ever (N-2); and whoever flips a bit of what he has recorded would be believed.

use bytes::Bytes;
use crc32c::crc32c;
use futures_util::{Stream, StreamExt};
use prost::Message;
use tonic::{Status, Streaming};

use super::wire::Frame;

impl Frame {
    pub(crate) fn of(bytes: Bytes) -> Self {
        Self { checksum: crc32c(&bytes), bytes }
    }

    pub(crate) fn carrying(message: &impl Message) -> Self {
        Self::of(message.encode_to_vec().into())
    }

    /// # Errors
    /// It is not as it was sent; whoever has asked can ask again.
    pub(crate) fn carried<M: Message + Default>(self) -> Result<M, Status> {
        let bytes = self.read().map_err(|status| Status::unavailable(status.message()))?;
        M::decode(bytes).map_err(|error| Status::unavailable(format!("not the message that was asked for: {error}")))
    }

    /// # Errors
    /// It is not as it was sent.
    pub(crate) fn read(self) -> Result<Bytes, Status> {
        match crc32c(&self.bytes) == self.checksum {
            true => Ok(self.bytes),
            false => Err(Status::invalid_argument("a message that was changed on its way")),
        }
    }
}

/// What comes on a stream.
pub(super) fn frames(streaming: Streaming<Frame>) -> impl Stream<Item = Result<Bytes, Status>> + Send {
    streaming.map(|frame| frame.and_then(Frame::read))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_is_noticed_wherever_it_is() {
        let sent = Frame::of(Bytes::from_static(b"what is said"));
        assert_eq!(sent.clone().read().unwrap(), "what is said");
        let bytes = sent.encode_to_vec();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let read = Frame::decode(&flipped[..]).ok().map(Frame::read);
            assert!(!matches!(read, Some(Ok(_))), "bit {bit}");
        }
    }
}

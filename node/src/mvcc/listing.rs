//! The answer to a read of much, which is encoded piece by piece as it is sent.
//!
//! Its values are those of the store, shared and not copied. One after the other, the pieces are the bytes of the `RangeResponse`:
//! a message may be cut between any two of its fields (protobuf.dev, "Encoding", "Last One Wins").

use std::vec;

use bytes::Bytes;
use prost::{Message, length_delimiter_len};
use proto::{
    etcdserverpb::{RangeResponse, ResponseHeader},
    mvccpb::KeyValue,
};

use super::Found;

/// A piece is cut once it has so many bytes; a single larger value makes a larger one.
const PIECE_BYTES: usize = 32 << 10;

/// A key and what it held: `mvccpb.KeyValue`, with bytes that the store has, too.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Listed {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(int64, tag = "2")]
    create_revision: i64,
    #[prost(int64, tag = "3")]
    mod_revision: i64,
    #[prost(int64, tag = "4")]
    version: i64,
    #[prost(bytes = "bytes", tag = "5")]
    value: Bytes,
    #[prost(int64, tag = "6")]
    lease: i64,
}

impl Listed {
    pub(super) fn new(Found { key, at, live }: &Found<'_>, keys_only: bool) -> Self {
        Self {
            key: (*key).clone(),
            create_revision: live.created.0,
            mod_revision: at.revision.0,
            version: live.version,
            value: if keys_only { Bytes::new() } else { live.value.clone() },
            lease: live.lease.0,
        }
    }
}

/// The bytes of a message as a field of another: a byte for its tag, which is no more than 15, its length, itself.
pub(crate) fn field_bytes(message: &impl Message) -> usize {
    let length = message.encoded_len();
    1 + length_delimiter_len(length) + length
}

impl From<Listed> for KeyValue {
    fn from(Listed { key, create_revision, mod_revision, version, value, lease }: Listed) -> Self {
        Self { key: key.into(), create_revision, mod_revision, version, value: value.into(), lease }
    }
}

/// Some of the keys of a `RangeResponse`.
#[derive(Clone, PartialEq, Message)]
struct Stretch {
    #[prost(message, repeated, tag = "2")]
    kvs: Vec<Listed>,
}

/// What a read has found.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Who answers, and at which revision.
    pub header: Option<ResponseHeader>,
    kvs: Vec<Listed>,
    kvs_bytes: usize,
    more: bool,
    count: i64,
}

impl Listing {
    pub(super) fn new(header: Option<ResponseHeader>, kvs: Vec<Listed>, more: bool, count: i64) -> Self {
        let kvs_bytes = kvs.iter().map(field_bytes).sum();
        Self { header, kvs, kvs_bytes, more, count }
    }

    /// How many keys there are, whatever the limit.
    pub fn count(&self) -> i64 {
        self.count
    }

    /// How many keys are in it.
    pub fn key_count(&self) -> usize {
        self.kvs.len()
    }

    /// What stands before the keys, and what stands behind them.
    fn ends(&self) -> (RangeResponse, RangeResponse) {
        let head = RangeResponse { header: self.header, ..RangeResponse::default() };
        let tail = RangeResponse { more: self.more, count: self.count, ..RangeResponse::default() };
        (head, tail)
    }

    /// How long the answer is.
    pub fn bytes(&self) -> usize {
        let (head, tail) = self.ends();
        head.encoded_len() + self.kvs_bytes + tail.encoded_len()
    }

    /// The answer as a message.
    pub fn into_response(self) -> RangeResponse {
        let kvs = self.kvs.into_iter().map(KeyValue::from).collect();
        RangeResponse { header: self.header, kvs, more: self.more, count: self.count }
    }

    /// The answer as bytes.
    pub fn pieces(self) -> Pieces {
        let (head, tail) = self.ends();
        Pieces { head: Some(head), kvs: self.kvs.into_iter(), tail: Some(tail) }
    }
}

/// What is still to be sent.
#[derive(Debug)]
pub struct Pieces {
    head: Option<RangeResponse>,
    kvs: vec::IntoIter<Listed>,
    tail: Option<RangeResponse>,
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if let Some(head) = self.head.take() {
            return Some(head.encode_to_vec().into());
        }
        let (mut stretch, mut bytes) = (Stretch::default(), 0);
        while bytes < PIECE_BYTES
            && let Some(listed) = self.kvs.next()
        {
            bytes += field_bytes(&listed);
            stretch.kvs.push(listed);
        }
        if bytes > 0 {
            return Some(stretch.encode_to_vec().into());
        }
        Some(self.tail.take()?.encode_to_vec().into())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proto::etcdserverpb::{PutRequest, RangeRequest};

    use super::*;
    use crate::mvcc::Store;

    #[test]
    fn pieces_are_the_message_that_a_read_answers() {
        // Values of so many bytes, and the most pieces between head and tail.
        for (values, limit, most) in [
            (&[][..], 0, 0),
            (&[0, 1], 0, 1),
            (&[10_000; 40], 0, 13),
            (&[10_000; 40], 7, 2),
            (&[1, 1_000_000, 1, 40_000, 40_000], 0, 3),
        ] {
            let mut store = Store::default();
            for (number, length) in values.iter().enumerate() {
                let key = format!("{number:03}").into_bytes();
                store.put(PutRequest { key, value: vec![7; *length], ..PutRequest::default() }).unwrap();
            }
            let whole = RangeRequest { key: vec![0], range_end: vec![0], limit, ..RangeRequest::default() };
            for request in [
                whole.clone(),
                RangeRequest { keys_only: true, ..whole.clone() },
                RangeRequest { count_only: true, ..whole },
            ] {
                let expected = store.range(&request).unwrap();
                let listing = store.list(&request).unwrap();
                assert_eq!(listing.clone().into_response(), expected, "{request:?}");
                assert_eq!(listing.bytes(), expected.encoded_len(), "{request:?}");
                let pieces: Vec<_> = listing.pieces().collect();
                assert!(pieces.len() <= most + 2, "{} of {request:?}", pieces.len());
                assert_eq!(pieces.concat(), expected.encode_to_vec(), "{request:?}");
            }
        }
    }
}

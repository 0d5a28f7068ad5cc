//! A record: the unit that is whole or not there. Everything the log remembers is one.
//!
//! ```text
//!  0      4      8        12       16     20
//!  | crc  | crc  | length | durable| kind | body … | zeroes up to a multiple of 4
//!  | head | body | body   | up to  |      |
//! ```
//!
//! All numbers are little-endian; the checksums are CRC-32C. The head's covers, besides the rest of the head, the number
//! of the segment and the offset: a record in a wrong place is no record, and neither is a payload that looks like one.
//! The body's covers the zeroes after it.
//!
//! *Durable up to* is the offset before which the segment was synced when the record was written. A crash can only have
//! torn what lies behind it: so a whole record proves that whatever is broken before that offset was broken by a disk.

use std::ops::Range;

use bytes::Bytes;
use crc32c::{crc32c, crc32c_append};

use crate::{
    entry::{Entry, EntryId, LogIndex, Payload, Term},
    error::Refusal,
};

/// The most that one entry or vote may hold: what peers take in one message.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 20;

/// Records start at multiples of this.
pub(crate) const ALIGNMENT: usize = 4;

const HEAD: usize = 20;
const ID: usize = 24;

/// What the log remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// An entry, after the last one.
    Entry(Entry),
    /// No entry is left from this index on.
    Truncate { from: LogIndex },
    /// No entry is left up to this one; it need not have been in the log.
    Purge(EntryId),
    /// The vote that counts from here on.
    Vote(Payload),
    /// Everything up to this entry is committed.
    Committed(EntryId),
}

/// A record that was read.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) record: Record,
    /// The segment was synced before this offset when the record was written.
    pub(crate) durable: u32,
    /// How many bytes it takes.
    pub(crate) size: u32,
}

impl Record {
    /// How many bytes it takes.
    pub(crate) fn size(&self) -> u32 {
        size(self.body_size()) as u32
    }

    /// How many bytes an entry takes with so large a payload.
    pub(crate) fn entry_size(payload: usize) -> usize {
        size(ID + payload)
    }

    /// Writes it at the end of `out`, which will be written at this offset of this segment.
    pub(crate) fn encode(&self, segment: u64, offset: u32, durable: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + HEAD, 0);
        self.encode_body(out);
        out.resize(start + self.size() as usize, 0);
        let (head, body) = out[start..].split_at_mut(HEAD);
        let fields = [crc32c(body), self.body_size() as u32, durable, self.kind()];
        for (place, field) in head[4..].chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let crc = head_crc(segment, offset, &head[4..]);
        head[..4].copy_from_slice(&crc.to_le_bytes());
    }

    fn kind(&self) -> u32 {
        match self {
            Self::Entry(_) => 1,
            Self::Truncate { .. } => 2,
            Self::Purge(_) => 3,
            Self::Vote(_) => 4,
            Self::Committed(_) => 5,
        }
    }

    fn body_size(&self) -> usize {
        match self {
            Self::Entry(entry) => ID + entry.payload.len(),
            Self::Truncate { .. } => 8,
            Self::Purge(_) | Self::Committed(_) => ID,
            Self::Vote(vote) => vote.len(),
        }
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::Entry(entry) => {
                encode_id(&entry.id, out);
                out.extend_from_slice(&entry.payload);
            }
            Self::Truncate { from } => out.extend_from_slice(&from.0.to_le_bytes()),
            Self::Purge(id) | Self::Committed(id) => encode_id(id, out),
            Self::Vote(vote) => out.extend_from_slice(vote),
        }
    }
}

/// A record whose checksums are right, before anybody has looked at what it says.
#[derive(Debug)]
pub(crate) struct Whole {
    kind: u32,
    body: Range<usize>,
    /// The segment was synced before this offset when the record was written.
    pub(crate) durable: u32,
}

/// Reads the record that starts at this place of `bytes`, which is this offset of this segment; or says what was expected
/// there. An entry's payload is a part of `bytes`, not a copy: whoever keeps it keeps the segment that was read, and of those
/// no more are read at once than what stays in memory anyway.
pub(crate) fn decode(bytes: &Bytes, at: usize, segment: u64, offset: u32) -> Result<Decoded, &'static str> {
    let Whole { kind, body, durable } = check(bytes.get(at..).unwrap_or_default(), segment, offset)?;
    let length = body.len();
    let body = bytes.slice(at + body.start..at + body.end);
    let record = decode_body(kind, &body).ok_or("a record of a kind that this release knows")?;
    Ok(Decoded { record, durable, size: size(length) as u32 })
}

/// Finds the record that `bytes` start with, at this offset of this segment; or says what was expected there.
pub(crate) fn check(bytes: &[u8], segment: u64, offset: u32) -> Result<Whole, &'static str> {
    let head = bytes.get(..HEAD).ok_or("a record")?;
    let field = |at: usize| u32_at(head, at);
    // Zeroes are the end of a segment, so this is looked at most often where nothing is.
    if field(16) == 0 || field(0) != head_crc(segment, offset, &head[4..]) {
        return Err("a record with the checksum of its head");
    }
    let (length, durable) = (field(8) as usize, field(12));
    let body = bytes.get(HEAD..size(length)).ok_or("a record that ends inside the segment")?;
    if field(4) != crc32c(body) {
        return Err("a record with the checksum of its body");
    }
    if durable > offset {
        return Err("a record that proves nothing of what comes after it");
    }
    Ok(Whole { kind: field(16), body: HEAD..HEAD + length, durable })
}

/// How many bytes the record has that these begin with, by its head, at this offset of this segment; none where there is no head.
pub(crate) fn size_by_head(bytes: &[u8], segment: u64, offset: u32) -> Option<u64> {
    let head = bytes.get(..HEAD)?;
    let is_head = u32_at(head, 16) != 0 && u32_at(head, 0) == head_crc(segment, offset, &head[4..]);
    is_head.then(|| size(u32_at(head, 8) as usize) as u64)
}

/// Refuses what does not go into a record.
pub(crate) fn check_size(payload: &Payload) -> Result<(), Refusal> {
    match payload.len() {
        bytes if bytes > MAX_PAYLOAD_BYTES => Err(Refusal::TooLarge { bytes }),
        _ => Ok(()),
    }
}

fn size(body: usize) -> usize {
    (HEAD + body).next_multiple_of(ALIGNMENT)
}

fn head_crc(segment: u64, offset: u32, rest: &[u8]) -> u32 {
    let place = crc32c_append(crc32c(&segment.to_le_bytes()), &offset.to_le_bytes());
    crc32c_append(place, rest)
}

fn encode_id(id: &EntryId, out: &mut Vec<u8>) {
    for number in [id.term.0, id.leader, id.index.0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn decode_body(kind: u32, body: &Bytes) -> Option<Record> {
    match kind {
        1 => {
            let id = decode_id(body.get(..ID)?)?;
            Some(Record::Entry(Entry { id, payload: body.slice(ID..) }))
        }
        2 => body.as_ref().try_into().ok().map(|from| Record::Truncate { from: LogIndex(u64::from_le_bytes(from)) }),
        3 => decode_id(body).map(Record::Purge),
        // It is kept for long, and the whole segment would be with it.
        4 => Some(Record::Vote(Bytes::copy_from_slice(body))),
        5 => decode_id(body).map(Record::Committed),
        _ => None,
    }
}

fn decode_id(body: &[u8]) -> Option<EntryId> {
    let whole: &[u8; ID] = body.try_into().ok()?;
    let (term, leader, index) = (u64_at(whole, 0), u64_at(whole, 8), u64_at(whole, 16));
    Some(EntryId { term: Term(term), leader, index: LogIndex(index) })
}

/// The number at this offset, which the caller knows to be inside.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// The number at this offset, which the caller knows to be inside.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at + 4)) << 32 | u64::from(u32_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(index: u64) -> EntryId {
        EntryId { term: Term(7), leader: 3, index: LogIndex(index) }
    }

    fn every_kind() -> Vec<Record> {
        vec![
            Record::Entry(Entry { id: id(1), payload: Bytes::from_static(b"hello") }),
            Record::Entry(Entry { id: id(2), payload: Payload::default() }),
            Record::Truncate { from: LogIndex(2) },
            Record::Purge(id(1)),
            Record::Vote(Bytes::from_static(b"vote")),
            Record::Vote(Payload::default()),
            Record::Committed(id(1)),
        ]
    }

    #[test]
    fn what_was_written_is_read() {
        for record in every_kind() {
            let mut bytes = Vec::new();
            record.encode(5, 40, 36, &mut bytes);
            let (whole, before) = (bytes.len(), b"before".len());
            let bytes = Bytes::from([b"before".as_slice(), &bytes, b"behind"].concat());
            let read = decode(&bytes, before, 5, 40).unwrap();
            assert_eq!((&read.record, read.durable, read.size as usize), (&record, 36, whole));
        }
    }

    #[test]
    fn a_record_is_one_only_where_it_was_written() {
        for record in every_kind() {
            let mut bytes = Vec::new();
            record.encode(5, 40, 36, &mut bytes);
            for (segment, offset) in [(4, 40), (5, 44), (0, 0)] {
                assert!(check(&bytes, segment, offset).is_err(), "{record:?} in segment {segment} at {offset}");
            }
        }
    }

    #[test]
    fn a_record_proves_nothing_of_what_comes_after_it() {
        let mut bytes = Vec::new();
        every_kind()[0].encode(5, 40, 44, &mut bytes);
        assert!(check(&bytes, 5, 40).is_err());
    }

    #[test]
    fn a_flipped_bit_or_a_missing_end_is_noticed() {
        for record in every_kind() {
            let mut bytes = Vec::new();
            record.encode(5, 40, 36, &mut bytes);
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(check(&flipped, 5, 40).is_err(), "{record:?}, bit {bit}");
            }
            for length in 0..bytes.len() {
                assert!(check(&bytes[..length], 5, 40).is_err(), "{record:?}, cut to {length}");
            }
        }
    }
}

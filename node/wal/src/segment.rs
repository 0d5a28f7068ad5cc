//! A segment: a header, records, and zeroes to the end of the file.
//!
//! ```text
//!  0          8        12      16       24      32         36     40
//!  | BATONWAL | format | whole | number | first | previous | crc  | records …
//! ```
//!
//! A segment gets its name when it is whole up to the offset *whole*: its header and the records that say again what
//! the log is besides its entries, so that older segments can be removed. *First* is the index of the next entry,
//! *previous* the offset at which the records of the segment before it end.
//!
//! Zeroes go ahead of the records, and are durable before these are written ([`Options::margin`]). So a file that ends sooner behind its
//! records, or within one, was cut off by something else than a crash: what it held may have been acknowledged.

use bytes::Bytes;
use crc32c::crc32c;

use crate::{
    entry::LogIndex,
    options::Options,
    record::{ALIGNMENT, Decoded, check, decode, size_by_head, u32_at, u64_at},
};

/// The one format that this release writes and reads.
pub const FORMAT: u32 = 1;
/// What the names of segments end with.
pub const SUFFIX: &str = ".wal";

/// The size of a header.
pub(crate) const HEADER: u32 = 40;

/// The name of a segment that is not whole yet.
pub(crate) const UNFINISHED: &str = "next.tmp";

const MAGIC: &[u8; 8] = b"BATONWAL";

/// The name of a segment.
pub(crate) fn name(number: u64) -> String {
    format!("{number:016}{SUFFIX}")
}

/// The number of the segment of this name, when it is one.
pub(crate) fn number(file: &str) -> Option<u64> {
    file.strip_suffix(SUFFIX)?.parse().ok().filter(|number| name(*number) == file)
}

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The segment was whole up to this offset when it got its name.
    pub(crate) whole: u32,
    /// One more than that of the segment before it.
    pub(crate) number: u64,
    /// The index of the next entry when it was made.
    pub(crate) first: LogIndex,
    /// Where the records of the segment before it end.
    pub(crate) previous: u32,
}

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER as usize);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.extend_from_slice(&self.whole.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.first.0.to_le_bytes());
        out.extend_from_slice(&self.previous.to_le_bytes());
        out.extend_from_slice(&crc32c(&out).to_le_bytes());
        out
    }

    /// Reads the header that a segment starts with.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, NotASegment> {
        let bytes = bytes.get(..HEADER as usize).ok_or(NotASegment::Damaged { expected: "a header" })?;
        if !bytes.starts_with(MAGIC) {
            return Err(NotASegment::Damaged { expected: "a segment of a log" });
        }
        let format = u32_at(bytes, 8);
        if format != FORMAT {
            return Err(NotASegment::Newer { format });
        }
        if u32_at(bytes, 36) != crc32c(&bytes[..36]) {
            return Err(NotASegment::Damaged { expected: "a header with its checksum" });
        }
        let (whole, number, first, previous) =
            (u32_at(bytes, 12), u64_at(bytes, 16), LogIndex(u64_at(bytes, 24)), u32_at(bytes, 32));
        Ok(Self { whole, number, first, previous })
    }
}

/// Why a file is no segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotASegment {
    Damaged { expected: &'static str },
    Newer { format: u32 },
}

/// A place that is not as it was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) offset: u32,
    pub(crate) expected: &'static str,
}

/// The records of a segment, each with its offset.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) records: Vec<(u32, Decoded)>,
    /// Where they end.
    pub(crate) end: u32,
}

/// Reads the last segment, whose tail a crash may have torn: what it leaves is cut, anything else is damage.
pub(crate) fn scan_last(bytes: &Bytes, header: &Header, options: &Options) -> Result<Scan, Damage> {
    let (scan, expected) = scan(bytes, header.number);
    let proven = synced_up_to(bytes, header.number, scan.end).max(header.whole);
    if scan.end < proven {
        return Err(Damage { offset: scan.end, expected });
    }
    // A record that is not whole says itself where it was to end.
    let torn = bytes.get(scan.end as usize..).and_then(|rest| size_by_head(rest, header.number, scan.end)).unwrap_or(0);
    let least = u64::from(shortest(scan.end, header, options)).max(u64::from(scan.end) + torn);
    match (bytes.len() as u64) < least {
        true => Err(Damage { offset: bytes.len() as u32, expected: "zeroes behind the records: the file was cut off" }),
        false => Ok(scan),
    }
}

/// No file is shorter whose records end at this offset.
pub(crate) fn shortest(end: u32, header: &Header, options: &Options) -> u32 {
    match end > header.whole {
        true => options.segment_bytes.min(end.saturating_add(options.margin())),
        false => options.first_zeroed_bytes(),
    }
}

/// Reads a segment that the next one says the end of; it was synced before there was a next one.
pub(crate) fn scan_earlier(bytes: &Bytes, number: u64, end: u32) -> Result<Scan, Damage> {
    let (scan, expected) = scan(bytes, number);
    if scan.end < end {
        return Err(Damage { offset: scan.end, expected });
    }
    let behind = bytes.get(end as usize..).unwrap_or_default();
    match behind.iter().position(|byte| *byte != 0) {
        Some(at) => Err(Damage { offset: end + at as u32, expected: "zeroes up to the end of the segment" }),
        None => Ok(scan),
    }
}

/// The records up to the first place where there is none, and what was expected there.
fn scan(bytes: &Bytes, number: u64) -> (Scan, &'static str) {
    let (mut records, mut end) = (Vec::new(), HEADER);
    loop {
        match decode(bytes, end as usize, number, end) {
            Ok(decoded) => {
                let offset = end;
                end += decoded.size;
                records.push((offset, decoded));
            }
            Err(expected) => return (Scan { records, end }, expected),
        }
    }
}

/// How far the segment must have been synced, as the records behind this offset prove.
fn synced_up_to(bytes: &[u8], number: u64, offset: u32) -> u32 {
    let later = (offset as usize..bytes.len()).step_by(ALIGNMENT).skip(1);
    later.filter_map(|at| check(&bytes[at..], number, at as u32).ok()).map(|found| found.durable).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_segment_s_own_name_has_a_number() {
        for (file, expected) in [
            ("0000000000000001.wal", Some(1)),
            ("1.wal", None),
            ("0000000000000001.wal.bak", None),
            ("+000000000000001.wal", None),
            ("next.tmp", None),
        ] {
            assert_eq!(number(file), expected, "{file}");
        }
        assert_eq!(number(&name(u64::MAX)), Some(u64::MAX));
    }

    #[test]
    fn a_flipped_bit_of_a_header_is_noticed() {
        let header = Header { whole: 80, number: 3, first: LogIndex(9), previous: 1000 };
        let bytes = header.encode();
        assert_eq!((bytes.len(), Header::decode(&bytes)), (HEADER as usize, Ok(header)));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&flipped).is_err(), "bit {bit}");
        }
    }
}

//! A block of header fields in HPACK (RFC 7541), and in it `:authority`.
//!
//! Nothing is kept between blocks: what is rewritten keeps its decoded length, so the tables of both sides stay equal, and a field
//! that is an index into them is what was rewritten before.

use http::uri::Authority;

use super::huffman;

/// `:authority` in HPACK's own table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;
const HUFFMAN: u8 = 0x80;

/// The block with a well-formed `:authority`; nothing where it needs no change. A block that ends within a field, since another frame
/// goes on with it, is looked at as far as it goes: `:authority` is among its first fields (RFC 9113, section 8.3).
pub(super) fn mended(block: &[u8]) -> Option<Vec<u8>> {
    let (mut mended, mut copied) = (Vec::new(), 0);
    let mut rest = Fields { block, at: 0 };
    while let Some(name) = rest.next_literal() {
        let begin = rest.at;
        let Some(value) = rest.string() else { break };
        if name == AUTHORITY
            && let Some(value) = value.decoded().and_then(|value| valid(&value))
        {
            mended.extend_from_slice(block.get(copied..begin)?);
            push_string(&mut mended, &value);
            copied = rest.at;
        }
    }
    (copied > 0).then(|| {
        mended.extend_from_slice(block.get(copied..).unwrap_or_default());
        mended
    })
}

/// An authority of the same length in the place of one that the HTTP library refuses; nothing where it takes it. etcd takes all.
fn valid(value: &[u8]) -> Option<Vec<u8>> {
    let is_one = |value: &[u8]| Authority::try_from(value).is_ok();
    // An empty one cannot become an authority of the same length.
    if value.is_empty() || is_one(value) {
        return None;
    }
    // What stands before `@` counts for nothing (RFC 3986, section 3.2.1).
    let mut mended = value.to_vec();
    if let Some(at) = value.windows(3).position(|three| three == b"://") {
        mended.splice(at..at + 3, *b"--@");
        if is_one(&mended) {
            return Some(mended);
        }
    }
    // A socket's path, or what 3.5.0 sends: `#initially=[…]`.
    let plain = value.iter().map(|octet| if octet.is_ascii_alphanumeric() || *octet == b'.' { *octet } else { b'-' });
    Some(plain.collect())
}

/// A string as it stands in a block.
struct Text<'a> {
    is_huffman: bool,
    octets: &'a [u8],
}

impl Text<'_> {
    fn decoded(&self) -> Option<Vec<u8>> {
        if self.is_huffman { huffman::decoded(self.octets) } else { Some(self.octets.to_vec()) }
    }
}

/// The fields of a block, one after the other.
struct Fields<'a> {
    block: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// The index of the name of the next field whose value is said, with the value coming next; 0 for a name that was said, too. Nothing
    /// at the end, and where it cannot go on.
    fn next_literal(&mut self) -> Option<usize> {
        loop {
            let first = *self.block.get(self.at)?;
            // RFC 7541, sections 6.1 to 6.3: an index, a field that is added to the table, another size of the table, other fields.
            let (prefix, is_literal) = match first {
                0x80.. => (7, false),
                0x40.. => (6, true),
                0x20.. => (5, false),
                _ => (4, true),
            };
            let index = self.integer(prefix)?;
            if is_literal {
                if index == 0 {
                    self.string()?;
                }
                return Some(index);
            }
        }
    }

    /// RFC 7541, section 5.1. No value in a frame has more than three octets.
    fn integer(&mut self, prefix: u32) -> Option<usize> {
        let most = (1_usize << prefix) - 1;
        let mut value = usize::from(self.octet()?) & most;
        if value < most {
            return Some(value);
        }
        for shift in [0, 7, 14] {
            let octet = self.octet()?;
            value += usize::from(octet & 0x7f) << shift;
            if octet < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// RFC 7541, section 5.2.
    fn string(&mut self) -> Option<Text<'a>> {
        let is_huffman = self.block.get(self.at)? & HUFFMAN != 0;
        let length = self.integer(7)?;
        let end = self.at.checked_add(length)?;
        let octets = self.block.get(self.at..end)?;
        self.at = end;
        Some(Text { is_huffman, octets })
    }

    fn octet(&mut self) -> Option<u8> {
        let octet = *self.block.get(self.at)?;
        self.at += 1;
        Some(octet)
    }
}

/// Without Huffman's code: another reader takes either.
fn push_string(block: &mut Vec<u8>, octets: &[u8]) {
    let (length, most) = (octets.len(), 0x7f);
    if length < most {
        block.push(length as u8);
    } else {
        block.push(most as u8);
        let mut left = length - most;
        while left >= 0x80 {
            block.push((left & 0x7f) as u8 | 0x80);
            left >>= 7;
        }
        block.push(left as u8);
    }
    block.extend_from_slice(octets);
}

//! The frames of a connection, of which the blocks of header fields are looked at (RFC 9113, sections 3.4, 4.1 and 6.2).

use super::block;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD_BYTES: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
const PRIORITY_BYTES: usize = 5;
/// As large a frame is taken, since no other size is advertised; a larger one is refused by whoever reads next.
const LARGEST_BYTES: usize = 16_384;

/// Bytes of a connection as they come in. One whose first request has an `:authority` that is well-formed, or that is not HTTP/2, is not
/// looked at any more; else each block is looked at, since the client sends it in full again when its table has dropped it.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    at: At,
    /// The frame that is not whole yet: at most one.
    held: Vec<u8>,
    was_mended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// After so many bytes of it.
    Preface(usize),
    Head,
    /// In a frame that is passed on, with so many bytes left.
    Passed(usize),
    /// In a frame of so many bytes with header fields.
    Headers(usize),
    /// All is passed on.
    Done,
}

impl Frames {
    pub(super) fn new() -> Self {
        Self { at: At::Preface(0), held: Vec::new(), was_mended: false }
    }

    /// Whether nothing is looked at, nor held, any more.
    pub(super) fn is_done(&self) -> bool {
        self.at == At::Done
    }

    /// Whether a block had to be changed.
    pub(super) fn was_mended(&self) -> bool {
        self.was_mended
    }

    /// Adds to `passed_on` what of these and earlier bytes may be read.
    pub(super) fn take(&mut self, mut bytes: &[u8], passed_on: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let taken = match self.at {
                At::Preface(matched) => self.preface(matched, bytes, passed_on),
                At::Head => self.head(bytes, passed_on),
                At::Passed(left) => {
                    let taken = left.min(bytes.len());
                    passed_on.extend_from_slice(&bytes[..taken]);
                    self.at = if taken == left { At::Head } else { At::Passed(left - taken) };
                    taken
                }
                At::Headers(length) => self.headers(length, bytes, passed_on),
                At::Done => {
                    passed_on.extend_from_slice(bytes);
                    bytes.len()
                }
            };
            bytes = &bytes[taken..];
        }
    }

    /// Nothing comes any more.
    pub(super) fn end(&mut self, passed_on: &mut Vec<u8>) {
        passed_on.append(&mut self.held);
        self.at = At::Done;
    }

    fn preface(&mut self, matched: usize, bytes: &[u8], passed_on: &mut Vec<u8>) -> usize {
        let left = &PREFACE[matched..];
        let taken = left.len().min(bytes.len());
        passed_on.extend_from_slice(&bytes[..taken]);
        self.at = match bytes[..taken] == left[..taken] {
            false => At::Done,
            true if taken == left.len() => At::Head,
            true => At::Preface(matched + taken),
        };
        taken
    }

    fn hold(&mut self, length: usize, bytes: &[u8]) -> usize {
        let taken = length.saturating_sub(self.held.len()).min(bytes.len());
        self.held.extend_from_slice(&bytes[..taken]);
        taken
    }

    fn head(&mut self, bytes: &[u8], passed_on: &mut Vec<u8>) -> usize {
        let taken = self.hold(HEAD_BYTES, bytes);
        if let [a, b, c, kind, ..] = self.held[..]
            && self.held.len() == HEAD_BYTES
        {
            let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
            if kind == HEADERS && (1..=LARGEST_BYTES).contains(&length) {
                self.at = At::Headers(HEAD_BYTES + length);
            } else {
                passed_on.append(&mut self.held);
                self.at = if length == 0 { At::Head } else { At::Passed(length) };
            }
        }
        taken
    }

    fn headers(&mut self, length: usize, bytes: &[u8], passed_on: &mut Vec<u8>) -> usize {
        let taken = self.hold(length, bytes);
        if self.held.len() == length {
            match mended(&self.held) {
                Some(frames) => {
                    self.was_mended = true;
                    passed_on.extend_from_slice(&frames);
                    self.held.clear();
                }
                None => passed_on.append(&mut self.held),
            }
            self.at = if self.was_mended { At::Head } else { At::Done };
        }
        taken
    }
}

/// The frame with another block, as two where one is too small for it; nothing where it needs no change, or is none.
fn mended(frame: &[u8]) -> Option<Vec<u8>> {
    let (head, mut payload) = frame.split_at_checked(HEAD_BYTES)?;
    let &[_, _, _, kind, flags, ref stream @ ..] = head else { return None };
    if flags & PADDED != 0 {
        let (padding, rest) = payload.split_first()?;
        payload = rest.get(..rest.len().checked_sub(usize::from(*padding))?)?;
    }
    let (priority, block) = payload.split_at_checked(if flags & PRIORITY != 0 { PRIORITY_BYTES } else { 0 })?;
    // Padding is left out.
    let payload = [priority, &block::mended(block)?].concat();
    let (first, more) = payload.split_at(payload.len().min(LARGEST_BYTES));
    let frame = |kind, flags: u8, payload: &[u8]| {
        let [.., a, b, c] = payload.len().to_be_bytes();
        [&[a, b, c, kind, flags], stream, payload].concat()
    };
    Some(match more {
        [] => frame(kind, flags & !PADDED, first),
        more => [frame(kind, flags & !PADDED & !END_HEADERS, first), frame(CONTINUATION, flags & END_HEADERS, more)]
            .concat(),
    })
}

//! What a client sends, for a fuzzer that does not know the frames.

use super::{block, frames::Frames};

/// How HTTP/2 begins, with SETTINGS that say nothing (RFC 9113, section 3.4).
pub(in crate::transport) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Wherever a read ends, the same is passed on; and what came in, where nothing had to be changed.
pub fn fuzz(bytes: &[u8]) {
    let (whole, frames) = passed_on(bytes, bytes.len().max(1));
    for piece in [1, 2 + bytes.len() % 29] {
        assert_eq!(passed_on(bytes, piece).0, whole, "in pieces of {piece}");
    }
    assert!(frames.was_mended() || whole == bytes, "nothing is changed, and another thing is read");
    if let Some(mended) = block::mended(bytes) {
        assert_eq!(block::mended(&mended), None, "it is an authority then");
    }
}

/// What comes of these bytes, in pieces of so many; the last frame may not be whole.
pub(super) fn passed_on(bytes: &[u8], piece: usize) -> (Vec<u8>, Frames) {
    let (mut frames, mut passed_on) = (Frames::new(), Vec::new());
    bytes.chunks(piece).for_each(|piece| frames.take(piece, &mut passed_on));
    let seen = frames.clone();
    frames.end(&mut passed_on);
    (passed_on, seen)
}

/// Bytes to begin with: requests of one connection, and a block alone.
pub fn seeds() -> Vec<Vec<u8>> {
    let block =
        |authority: &[u8]| [b"\x83\x86\x84\x41", &[authority.len() as u8][..], authority, b"\x40\x01a\x01b"].concat();
    let request = |flags: u8, block: &[u8]| [&[0, 0, block.len() as u8, 1, flags, 0, 0, 0, 1][..], block].concat();
    let (wrong, right) = (block(b"http://a:1"), block(b"a:1"));
    let padded = [b"\x02\0\0\0\0\x09", &wrong[..], b"\0\0"].concat();
    let data = b"\0\0\x03\0\x01\0\0\0\x01abc";
    vec![
        [PREFACE, &request(0x2c, &padded), data, &request(0x5, &wrong), data, &request(0x5, b"\xbf\xbe")].concat(),
        [PREFACE, &request(0x5, &right), data, &request(0x5, &wrong)].concat(),
        b"GET /health HTTP/1.1\r\n\r\n".to_vec(),
        wrong,
    ]
}

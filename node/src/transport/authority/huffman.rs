//! Huffman's code for strings in HPACK (RFC 7541, section 5.2 and appendix B); reading alone.
//!
//! The code is canonical: codes of one length follow each other in the order of their octets, and the next length goes on where
//! the shorter one ended. So the lengths say all. Crates that have it are not maintained any more.

/// How many bits the code of each octet has. The end of a string has 30, the last of all.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
const LONGEST: usize = 30;

/// How many octets have a code of each length, and the octets in the order of their codes.
const TABLE: ([u32; LONGEST + 1], [u8; 256]) = {
    let (mut counts, mut octets, mut filled, mut length) = ([0; LONGEST + 1], [0; 256], 0, 0);
    while length <= LONGEST {
        let mut octet = 0;
        while octet < 256 {
            if LENGTHS[octet] as usize == length {
                counts[length] += 1;
                octets[filled] = octet as u8;
                filled += 1;
            }
            octet += 1;
        }
        length += 1;
    }
    (counts, octets)
};

/// What was encoded; nothing where that cannot be.
pub(super) fn decoded(encoded: &[u8]) -> Option<Vec<u8>> {
    let (counts, octets) = (&TABLE.0, &TABLE.1);
    let mut text = Vec::with_capacity(encoded.len() * 8 / 5);
    // The bits since the last octet; the first code of their length, and how many octets have a shorter one.
    let (mut code, mut length, mut first, mut shorter) = (0_u32, 0, 0_u32, 0_u32);
    for bit in encoded.iter().flat_map(|byte| (0..8).rev().map(move |at| u32::from(byte >> at & 1))) {
        (code, length, first) = (code << 1 | bit, length + 1, first << 1);
        let count = *counts.get(length)?;
        if code < first + count {
            text.push(*octets.get((shorter + code - first) as usize)?);
            (code, length, first, shorter) = (0, 0, 0, 0);
        } else {
            (first, shorter) = (first + count, shorter + count);
        }
    }
    // The last octet is filled up with ones.
    (length < 8 && code == (1 << length) - 1).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541, appendix C.4 and C.6.
    #[test]
    fn strings_are_read_as_they_were_meant() {
        for (encoded, text) in [
            (&[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff][..], "www.example.com"),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f], "custom-key"),
            (
                &[0x9d, 0x29, 0xad, 0x17, 0x18, 0x63, 0xc7, 0x8f, 0x0b, 0x97, 0xc8, 0xe9, 0xae, 0x82, 0xae, 0x43, 0xd3],
                "https://www.example.com",
            ),
            (&[], ""),
        ] {
            assert_eq!(decoded(encoded).as_deref(), Some(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_is_no_string_is_none() {
        // The end of a string within it; a byte too much; the last octet filled up with zeros.
        for wrong in [&[0xff, 0xff, 0xff, 0xff][..], &[0xf1, 0xe3, 0xff, 0xff], &[0x18]] {
            assert_eq!(decoded(wrong), None, "{wrong:?}");
        }
    }

    /// A code in which no bits are left over, and none come twice: Kraft's sum, with the end of a string.
    #[test]
    fn the_code_is_whole() {
        let sum: u64 = LENGTHS.iter().map(|length| 1 << (LONGEST as u8 - length)).sum();
        assert_eq!(sum + 1, 1 << LONGEST);
    }
}

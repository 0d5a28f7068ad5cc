//! CRC-32C (Castagnoli), the checksum of etcd's hashes and of stored states (RFC 3720, appendix B.4).

/// A checksum under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crc32c(u32);

impl Default for Crc32c {
    fn default() -> Self {
        Self(!0)
    }
}

impl Crc32c {
    /// Takes in more bytes; how they are cut up makes no difference.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 >> 8) ^ TABLE[usize::from(self.0 as u8 ^ byte)];
        }
    }

    /// The checksum of all bytes so far.
    pub(crate) fn sum(self) -> u32 {
        !self.0
    }
}

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < table.len() {
        let (mut word, mut bit) = (index as u32, 0);
        while bit < 8 {
            word = (word >> 1) ^ if word & 1 == 1 { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        table[index] = word;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_rfc() {
        let ascending: Vec<u8> = (0..32).collect();
        for (bytes, expected) in [
            (&[0; 32][..], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
            (b"123456789", 0xe306_9283),
        ] {
            let mut whole = Crc32c::default();
            whole.update(bytes);
            assert_eq!(whole.sum(), expected);
            let mut cut = Crc32c::default();
            bytes.chunks(5).for_each(|piece| cut.update(piece));
            assert_eq!(cut, whole);
        }
    }
}

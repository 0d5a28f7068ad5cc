//! A hasher that knows names when it sees them: of worlds that differ only in names it makes one number.
//!
//! Revisions and ids are made anew with every write, processes with every start, and no rule asks more of two of them
//! than whether they are equal: they are counted in the order in which they are met.

use std::hash::Hasher;

use super::names::{HOSTS, MEMBERS, PROCESSES};

pub const MOST: usize = 16;
/// The bits that tell members from each other, and processes.
const LOW: u64 = 0xffff_ffff;

pub struct Canonical {
    lanes: (u64, u64),
    /// The place of each host in the order.
    pub hosts: [u8; MOST],
    /// The place of each member.
    pub members: [u8; MOST],
    is_blind: bool,
    revisions: Vec<i64>,
    ids: Vec<u128>,
    starts: Vec<u64>,
}

impl Canonical {
    pub fn new() -> Self {
        Self {
            lanes: (0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344),
            hosts: [0; MOST],
            members: [0; MOST],
            is_blind: false,
            revisions: Vec::with_capacity(16),
            ids: Vec::with_capacity(16),
            starts: Vec::with_capacity(8),
        }
    }

    /// One that does not tell what was made anew from another.
    pub fn blind() -> Self {
        Self { is_blind: true, ..Self::new() }
    }

    fn mix(&mut self, word: u64) {
        let (a, b) = &mut self.lanes;
        *a = (a.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        *b = (b.rotate_left(23) ^ word).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        *a ^= *a >> 32;
        *b ^= *b >> 29;
    }
}

/// The place of one among those met so far.
fn count<T: PartialEq>(met: &mut Vec<T>, one: T) -> u64 {
    let at = met.iter().position(|other| *other == one).unwrap_or_else(|| {
        met.push(one);
        met.len() - 1
    });
    at as u64 + 1
}

impl Hasher for Canonical {
    fn finish(&self) -> u64 {
        let (a, b) = self.lanes;
        let mixed = (a ^ b.rotate_left(32)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ (mixed >> 33)
    }

    /// Texts are for people and decide nothing.
    fn write(&mut self, _: &[u8]) {}

    /// Revisions, and nothing else in a world.
    fn write_i64(&mut self, revision: i64) {
        if revision == 0 || self.is_blind {
            return self.mix(0);
        }
        let counted = count(&mut self.revisions, revision);
        self.mix(counted);
    }

    fn write_u64(&mut self, word: u64) {
        match (word & !LOW, word & LOW) {
            (MEMBERS, member) => self.mix(u64::from(self.members[member as usize])),
            (PROCESSES, _) if self.is_blind => self.mix(0),
            (PROCESSES, start) => {
                let counted = count(&mut self.starts, start);
                self.mix(counted);
            }
            _ => self.mix(word),
        }
    }

    fn write_u128(&mut self, word: u128) {
        match word.checked_sub(HOSTS) {
            Some(host) => self.mix(u64::from(self.hosts[(host & 0xff) as usize]) << 16 | (host >> 16) as u64),
            None if self.is_blind => self.mix(0),
            None => {
                let counted = count(&mut self.ids, word);
                self.mix(counted);
            }
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(u64::from(word));
    }
    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }
    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }
    fn write_isize(&mut self, word: isize) {
        self.mix(word as u64);
    }
}

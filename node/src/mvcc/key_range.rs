//! Which keys a request means by its `key` and `range_end`.

use std::ops::Bound;

/// A range of keys, as etcd's requests write it (etcd API reference, "Key ranges").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRange<'a> {
    One(&'a [u8]),
    /// This key and all after it.
    From(&'a [u8]),
    /// From the first up to and without the second; nothing where they are not in order.
    Between(&'a [u8], &'a [u8]),
}

impl<'a> KeyRange<'a> {
    /// Reads the two fields: an empty end means one key, an end of one zero byte means no end.
    pub fn new(key: &'a [u8], range_end: &'a [u8]) -> Self {
        match range_end {
            [] => Self::One(key),
            [0] => Self::From(key),
            end => Self::Between(key, end),
        }
    }

    /// Whether the range has this key.
    pub fn contains(self, key: &[u8]) -> bool {
        match self {
            Self::One(one) => key == one,
            Self::From(first) => first <= key,
            Self::Between(first, end) => first <= key && key < end,
        }
    }

    /// The range for a map in key order; never with its ends the wrong way round, for which a map would panic.
    pub(super) fn bounds(self) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
        match self {
            Self::One(one) => (Bound::Included(one), Bound::Included(one)),
            Self::From(first) => (Bound::Included(first), Bound::Unbounded),
            Self::Between(first, end) => (Bound::Included(first), Bound::Excluded(end.max(first))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_etcd_reads_it() {
        for (key, end, has, has_not) in [
            ("b", "", &["b"][..], &["a", "bb", "c"][..]),
            ("b", "\0", &["b", "bb", "z"], &["a", "\0"]),
            ("\0", "\0", &["\0", "a", "z"], &[]),
            ("b", "d", &["b", "bb", "c"], &["a", "d", "e"]),
            ("d", "b", &[], &["b", "c", "d"]), // the wrong way round: nothing
            ("b", "b", &[], &["b"]),
        ] {
            let range = KeyRange::new(key.as_bytes(), end.as_bytes());
            assert!(has.iter().all(|key| range.contains(key.as_bytes())), "{key:?} {end:?}");
            assert!(!has_not.iter().any(|key| range.contains(key.as_bytes())), "{key:?} {end:?}");
        }
    }
}

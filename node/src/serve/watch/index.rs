//! Which watches a key is for: single keys in a map, ranges in an interval tree, so that a change costs nothing of those that it
//! is not for (etcd, `watcherGroup` in server/storage/mvcc/watcher_group.go).

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use bytes::Bytes;
use interavl::IntervalTree;

use crate::mvcc::KeyRange;

/// A stream, and its watch.
pub(super) type WatchKey = (u64, i64);

/// Watches, each with what is to be done about it.
#[derive(Debug)]
pub(super) struct Index<T> {
    keys: HashMap<Bytes, BTreeMap<WatchKey, T>>,
    ranges: IntervalTree<Point, BTreeMap<WatchKey, T>>,
}

/// A place among the keys: before one, between it and the next, or behind all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    At { key: Bytes, is_behind: bool },
    End,
}

fn interval(range: KeyRange<'_>) -> Option<Range<Point>> {
    let point = |key: &[u8]| Point::At { key: Bytes::copy_from_slice(key), is_behind: false };
    match range {
        KeyRange::One(_) => None,
        KeyRange::From(first) => Some(point(first)..Point::End),
        KeyRange::Between(first, end) => Some(point(first)..point(end)),
    }
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self { keys: HashMap::new(), ranges: IntervalTree::default() }
    }
}

impl<T> Index<T> {
    /// Adds a watch of a range, which has a key.
    pub(super) fn insert(&mut self, range: KeyRange<'_>, watch: WatchKey, what: T) {
        let watches = match (interval(range), range) {
            (Some(interval), _) if interval.start < interval.end => self.ranges.entry(interval).or_default(),
            (_, KeyRange::One(key)) => self.keys.entry(Bytes::copy_from_slice(key)).or_default(),
            _ => return,
        };
        watches.insert(watch, what);
    }

    pub(super) fn remove(&mut self, range: KeyRange<'_>, watch: WatchKey) {
        if let KeyRange::One(key) = range {
            if let Some(watches) = self.keys.get_mut(key) {
                watches.remove(&watch);
                if watches.is_empty() {
                    self.keys.remove(key);
                }
            }
        } else if let Some(interval) = interval(range).filter(|interval| interval.start < interval.end)
            && let Some(watches) = self.ranges.get_mut(&interval)
        {
            watches.remove(&watch);
            if watches.is_empty() {
                self.ranges.remove(&interval);
            }
        }
    }

    /// Does this with each watch that a change of this key is for.
    pub(super) fn for_each(&self, key: &Bytes, mut what: impl FnMut(&WatchKey, &T)) {
        let point = |is_behind| Point::At { key: key.clone(), is_behind };
        let here = point(false)..point(true);
        let ranges = self.ranges.iter_overlaps(&here).map(|(_, watches)| watches);
        self.keys.get(key).into_iter().chain(ranges).flatten().for_each(|(watch, of)| what(watch, of));
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&WatchKey, &T)> {
        self.keys.values().chain(self.ranges.iter().map(|(_, watches)| watches)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All ranges of keys of up to two letters, and a key that is in none.
    fn ranges() -> Vec<(Bytes, Bytes)> {
        let keys = ["a", "aa", "ab", "b", "ba", "c"].map(Bytes::from_static_str);
        let ends = keys.clone().into_iter().chain([Bytes::new(), Bytes::from_static(&[0])]);
        ends.flat_map(|end| keys.clone().map(|key| (key, end.clone()))).collect()
    }

    trait FromStaticStr {
        fn from_static_str(text: &'static str) -> Bytes;
    }

    impl FromStaticStr for Bytes {
        fn from_static_str(text: &'static str) -> Bytes {
            Bytes::from_static(text.as_bytes())
        }
    }

    #[test]
    fn a_change_is_for_the_watches_whose_range_has_its_key() {
        let mut index = Index::default();
        let mut watches: Vec<_> = ranges().into_iter().chain(ranges()).enumerate().collect();
        for (id, (key, end)) in &watches {
            index.insert(KeyRange::new(key, end), (*id as u64 % 3, *id as i64), *id);
        }
        while !watches.is_empty() {
            for key in ["a", "aa", "aaa", "b", "bz", "c", "d", ""].map(Bytes::from_static_str) {
                let expected: BTreeSet<_> =
                    watches.iter().filter(|(_, (first, end))| KeyRange::new(first, end).contains(&key)).collect();
                let expected: BTreeSet<_> = expected.into_iter().map(|(id, _)| *id).collect();
                let mut found = Vec::new();
                index.for_each(&key, |_, id| found.push(*id));
                assert_eq!(found.len(), expected.len(), "{key:?}: none twice");
                assert_eq!(BTreeSet::from_iter(found), expected, "{key:?}");
            }
            let (id, (key, end)) = watches.swap_remove(watches.len() / 2);
            index.remove(KeyRange::new(&key, &end), (id as u64 % 3, id as i64));
        }
        assert_eq!(index.all().count(), 0);
        assert!(index.keys.is_empty() && index.ranges.iter().next().is_none(), "nothing is left of those that went");
    }
}

//! The addresses of one look: answers bring up as many as they like, and only so many are asked.

use std::collections::{BTreeSet, VecDeque};

/// How many addresses one look asks.
pub(super) const MAX_ADDRESSES: usize = 128;

/// The addresses of one look: each is asked once.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub known: BTreeSet<String>,
    pub waiting: VecDeque<String>,
    pub left_out: usize,
}

impl Queue {
    pub fn add(&mut self, addresses: impl IntoIterator<Item = String>) {
        for address in addresses {
            if self.known.contains(&address) {
                continue;
            }
            if self.known.len() == MAX_ADDRESSES {
                self.left_out += 1;
                continue;
            }
            self.known.insert(address.clone());
            self.waiting.push_back(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_addresses_are_asked_each_once_and_the_rest_is_counted() {
        let mut queue = Queue::default();
        let addresses = |range: std::ops::Range<usize>| range.map(|port| format!("http://h:{port}"));
        queue.add(addresses(0..100));
        queue.add(addresses(50..200));
        assert_eq!((queue.waiting.len(), queue.left_out), (MAX_ADDRESSES, 200 - MAX_ADDRESSES));
        assert_eq!(queue.waiting.iter().cloned().collect::<BTreeSet<_>>(), queue.known);
    }
}

//! How large a store is: the bytes of its keys and values, and a flat amount for whatever stands beside them.
//!
//! Kept up to date with each change, and the same on every member that holds the same, whatever its memory says.

use bytes::Bytes;

use super::{
    Store,
    history::{History, Record},
};

/// What a key takes beside its bytes, in the map, while it has any change.
const KEY_BYTES: u64 = 160;
/// What a change takes beside its value: in the key's history, and in the list of changes.
const CHANGE_BYTES: u64 = 170;
/// What a lease takes, about.
const LEASE_BYTES: u64 = 64;

impl Store {
    pub fn size_bytes(&self) -> u64 {
        self.records_bytes + LEASE_BYTES * self.leases.len() as u64
    }

    /// Takes the measure of all records anew.
    pub(super) fn measure(&mut self) {
        let of =
            |(key, history): (&Bytes, &History)| of_key(key) + history.records().iter().map(of_change).sum::<u64>();
        self.records_bytes = self.keys.iter().map(of).sum();
        self.alive = self.keys.values().filter(|history| history.head().is_some()).count();
    }
}

/// What a key takes, beside its changes.
pub(super) fn of_key(key: &[u8]) -> u64 {
    KEY_BYTES + key.len() as u64
}

/// What one change of a key takes.
pub(super) fn of_change(record: &Record) -> u64 {
    CHANGE_BYTES + record.live.as_ref().map_or(0, |live| live.value.len()) as u64
}

//! How large a store is: the bytes of its keys and values, and a flat amount for whatever stands beside them.
//!
//! Kept up to date with each change, and the same on every member that holds the same, whatever its memory says.

use bytes::Bytes;

use super::{
    Store,
    history::{History, Record},
};

/// What a change takes beside its key and value, about.
const RECORD_BYTES: u64 = 128;
/// What a lease takes, about.
const LEASE_BYTES: u64 = 64;

impl Store {
    pub fn size_bytes(&self) -> u64 {
        self.records_bytes + LEASE_BYTES * self.leases.len() as u64
    }

    /// Takes the measure of all records anew.
    pub(super) fn measure(&mut self) {
        let of_key = |(key, history): (&Bytes, &History)| history.records().iter().map(|one| of(key, one)).sum::<u64>();
        self.records_bytes = self.keys.iter().map(of_key).sum();
    }
}

/// What one change of a key takes.
pub(super) fn of(key: &[u8], record: &Record) -> u64 {
    let value = record.live.as_ref().map_or(0, |live| live.value.len());
    RECORD_BYTES + (key.len() + value) as u64
}

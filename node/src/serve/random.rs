//! Chance, for what must differ and guards nothing: ids of leases, and when streams report.

use std::hash::{BuildHasher, RandomState};

/// Any number. The standard library seeds its hash maps from the system, each with other keys, so that nobody foresees it.
pub(super) fn number() -> u64 {
    RandomState::new().hash_one(())
}

/// From 0 up to and without 1.
pub(super) fn fraction() -> f64 {
    number() as f64 / (u64::MAX as f64 + 1.0)
}

//! The key-value state: a table for each of etcd's rules, then random requests against a naive model and against real etcd.

// A test binary of several files: what is allowed in tests is allowed in all of it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod against_etcd;
mod against_model;
mod answer;
mod check;
mod compact;
mod delete;
mod etcd;
mod hash;
mod lease;
mod model;
mod put;
mod random;
mod range;
#[path = "../real/mod.rs"]
mod real;
mod size;
mod snapshot;
mod txn;
mod watch;
mod word;

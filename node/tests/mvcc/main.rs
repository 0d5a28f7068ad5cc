//! The key-value state: a table for each of etcd's rules, then random requests against a naive model and against real etcd.

// A test binary of several files: what is allowed in tests is allowed in all of it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod check;
mod compact;
mod delete;
mod lease;
mod put;
mod range;
mod snapshot;
mod txn;
mod watch;
mod word;

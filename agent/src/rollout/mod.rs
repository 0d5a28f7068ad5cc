//! The protocol between hosts: what they share, the machine that each of them runs, and the way to the store.

pub mod act;
pub mod agent;
mod answered;
pub mod change;
pub mod changes;
#[cfg(test)]
mod driven;
pub mod fate;
mod hex;
pub mod host_id;
pub mod inventory;
pub mod keepalive;
pub mod keys;
pub mod listing;
mod mend;
pub mod reading;
mod registering;
pub mod route;
pub mod rules;
mod step;
mod step_end;
pub mod store;
pub mod stored;
pub mod txn;

pub use changes::Changes;
pub use fate::{NotGranted, NotRead, TxnAnswer, Unknown};
pub use keepalive::KeepAlive;
pub use store::{Lease, RawKey, Snapshot, Store};

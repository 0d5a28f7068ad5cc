//! What hosts do together: the keys they share, and the lease that says who may act.
//!
//! This is the part that talks: raw keys and transactions ([`store`]), a lease kept alive ([`keepalive`]), and word that
//! something changed ([`changes`]). What the keys mean, and what may be written when, is not decided here.

pub mod changes;
pub mod keepalive;
pub mod route;
pub mod store;

pub use changes::Changes;
pub use keepalive::KeepAlive;
pub use store::{Compare, Lease, Op, RawKey, Snapshot, Store, TxnAnswer, Unknown};

//! What the connections of clients and of other members have in common: sockets that are had at once, and how a connection
//! is taken in, kept alive and ended. Not in here: what is asked over one.

pub mod connection;
pub mod listening;

/// As many requests of one connection can be given up before they were looked at: a program whose member stood still for a
/// moment is not cut off with all that it has on it.
pub const MAX_PENDING_RESETS: usize = 1024;

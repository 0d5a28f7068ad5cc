//! What the connections of clients and of other members have in common: sockets that are had at once, and how a connection
//! is taken in, secured, kept alive and ended. Not in here: what is asked over one.

pub mod authority;
pub mod connection;
pub(crate) mod gathering;
pub mod listening;
pub(crate) mod log_throttle;
pub(crate) mod silent;
pub mod tls;

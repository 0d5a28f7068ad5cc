//! Programs that Baton has no part in, on a cluster of either system.

// A test binary of several files: what is allowed in tests is allowed in all of it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod python;

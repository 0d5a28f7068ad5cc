//! Log and snapshots below openraft: its own conformance suite, and what that does not ask.

// A test binary of several files: what is allowed in tests is allowed in all of it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod alone;
mod conformance;
mod hostile;
mod leader;
mod notebook;
mod snapshots;

//! Everything the agent does to its own host: files, processes, the binary.
//!
//! Nothing here knows a cluster or decides anything: each function does one thing that it was told to do,
//! can be repeated after a crash at any instant, and says with a typed error what it could not do.

pub(crate) mod blocking;
pub mod files;
pub mod process;
pub mod program;
pub mod release;
pub mod runtime;

//! The journal: what this host's agent was about to do, and what came of it.
//!
//! `file.rs` makes entries durable, whatever they are; `progress.rs` says what they add up to,
//! by action; each action has a file.

pub mod file;
pub mod guarded;
pub mod progress;
pub mod restart;

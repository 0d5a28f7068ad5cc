//! The journal: what this host's agent was about to do, and what came of it.

pub mod progress;

//! New releases that fail: what the agent does, what the other hosts do, and how it goes on.

mod certificate;
mod hooks;
mod last_member;
mod new_binary;
mod others;
mod outside;
mod preflight;
mod probe;
mod removed;
mod restart;
mod supervisor;
mod told;
mod unstopped;

const SICK: &str = env!("CARGO_BIN_EXE_sick-member");

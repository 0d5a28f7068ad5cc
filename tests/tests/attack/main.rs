//! What somebody may try who is not the operator: another user of the host, a liar on the network, whoever may write
//! the shared keys. Each file is one way in, and what the agent does about it. Source: agent/TRUST.md.

mod divided;
mod files;
mod keys;
mod limits;
mod lookalike;
mod misnamed;
mod network;
mod programs;
mod roles;
mod switched;
mod terminal;

/// The program that is not well in a chosen way.
const SICK: &str = env!("CARGO_BIN_EXE_sick-member");
mod twins;

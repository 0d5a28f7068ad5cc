//! Deterministic simulation of whole clusters: the node as it is, from its log to its clients' port, on simulated machines.
//!
//! ```text
//!   main.rs      one seed; a soak; a failing seed made small
//!      |
//!   world.rs     the loop: what is due on the network, then each machine for a tick of its clock
//!      |------ plan.rs      what goes wrong and when, as data that a seed gives and a shrink shortens
//!      |------ faults.rs    makes it go wrong
//!      |------ downgrades.rs lowers the version, then releases, and calls it off
//!      |------ membership.rs has members come and go, and says what their gate must come to
//!      |------ additions.rs keeps disks while a voter is under way that may never start
//!      |------ clients/     puts, reads, counts, leases, watches, compactions, and what they saw
//!      |------ checks.rs    what must hold all the time, and at the end
//!      |------ counts.rs    whether a key counts only while the feature for that is on
//!      |------ decisions.rs whether the gate is what all voters wanted, entry by entry
//!      |
//!   machine.rs   a machine and the process on it; host.rs: what the node sees of it
//!   network.rs   connections that are late, slow, cut, broken
//!   entropy.rs   chance and clock of everything else
//! ```
//!
//! Everything runs on one thread, in the order that the seed decides: the same seed gives the same run, to the byte. A machine
//! has a runtime of its own with a clock that the world moves on; ending its process is dropping that runtime, as SIGKILL
//! does, in the middle of whatever it was doing. Where the node has several threads (raft, clients, the log's writer), here it
//! has one, so races between threads lie outside; so do the kernel, TLS, and the flags' parsing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a tool of tests: what cannot be is a failure of the run")]

mod additions;
pub mod checks;
pub mod clients;
mod counts;
mod decisions;
mod downgrades;
pub mod entropy;
pub mod faults;
pub mod host;
pub mod machine;
mod membership;
pub mod network;
pub mod plan;
mod put_away;
pub mod world;

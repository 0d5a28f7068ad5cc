//! The raft group of the bundled node: openraft behind an interface of our own, with formats of our own.
//!
//! ```text
//!    Group   propose, read_index, transfer, standing        (group.rs, answer.rs)
//!      |
//!   openraft ---- LogStore   ---- wal, a crate of its own   (log_store.rs)
//!      |    \---- Applier    ---- dyn Machine, Snapshots    (machine.rs, snapshots.rs)
//!      \--------- Network    ---- dyn Peers                 (network.rs, peers.rs)
//! ```
//!
//! Only this crate knows openraft, and all of its generic code is compiled here: what changes above it is built anew in
//! seconds, and another raft can take its place behind the same interface. Everything that is stored or sent is a message
//! of `proto/raft.proto` (`format`).

#![warn(missing_docs)]

mod acknowledged;
mod answer;
mod format;
mod group;
mod log_store;
mod machine;
mod network;
mod peers;
mod read_ahead;
mod settings;
mod snapshots;
mod types;

pub use answer::AnswerError;
pub use group::{Group, GroupError, ProposeError, RaftStatus, ReadError, prepare, with_causes};
pub use log_store::LogStore;
pub use machine::{Applier, Frozen, Machine, Stop, off_thread};
pub use peers::{Outgoing, Peer, PeerError, Peers, Pipe, Question};
pub use settings::Settings;
pub use snapshots::{SnapshotError, SnapshotFile, Snapshots};
pub use types::{Command, Types};

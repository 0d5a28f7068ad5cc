//! The raft group of the bundled node: openraft behind an interface of our own, with formats of our own.
//!
//! ```text
//!    Group   propose, read_index, transfer, status          (group.rs, members.rs, reading.rs, answer.rs, status)
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
mod answered;
mod arriving;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod bare;
mod format;
mod group;
mod log_store;
mod machine;
mod members;
mod network;
mod offline;
mod peers;
mod promise;
mod read_ahead;
mod read_along;
mod reading;
mod restored;
mod schedule;
mod settings;
mod snapshots;
mod status;
mod threads;
mod types;

pub use answer::AnswerError;
pub use arriving::{Arrival, ArrivalError};
pub use format::{Command, fuzz};
pub use group::{Group, GroupError, ProposeError, with_causes};
pub use log_store::{LogStore, uncommitted};
pub use machine::{Applier, Content, Frozen, Machine, Restored, Stop};
pub use members::{ChangeError, Members, MembersAt};
pub use offline::OfflineError;
pub use peers::{Lane, Outgoing, Peer, PeerError, Peers, Pipe, Question};
pub use reading::ReadError;
pub use restored::{BeginError, FIRST_INDEX, begin_with};
pub use settings::{ReadMode, Settings};
pub use snapshots::{Incoming, SnapshotError, SnapshotFile, Snapshots};
pub use status::RaftStatus;
pub use threads::{aside, both, off_thread};
pub use types::Types;

//! The node's raft log on disk: checksummed records in pre-zeroed segments, group commit.
//!
//! ```text
//!  append, vote, truncate, purge          entries, vote, state
//!         |                                      ^
//!     contents.rs   what the log holds, at once readable   (memory)
//!         |  queue, in order                     |
//!     writer.rs     one thread: write, fdatasync, then every callback of the batch
//!         |                                      |
//!     active.rs     the segment that is written; the next one when it is full
//!         |                                      |
//!     disk          every access to a file       recovery.rs   one pass over all segments, when the log is opened
//! ```
//!
//! Everything is a record in one sequence (`record.rs`): entries, votes, truncations, purges. So what is on disk is
//! always the log as it was at one moment, never a mixture, and the order in which things were asked for is kept.
//!
//! There is nothing here about raft's rules or the network, and no clock decides anything: an entry is an id and bytes, a vote is
//! bytes. How long a sync takes is measured.
//! Source: raft paper, figure 2 ("persistent state on all servers").

#![warn(missing_docs)]

mod active;
mod contents;
mod entry;
mod error;
mod marks;
mod measured;
mod named_file;
mod open_log;
mod options;
mod record;
mod recovery;
mod segment;
mod wal;
mod writer;

pub use entry::{Entry, EntryId, LogIndex, Payload, Term};
pub use error::{Refusal, WalError};
pub use measured::Measured;
pub use options::Options;
pub use record::MAX_PAYLOAD_BYTES;
pub use segment::{FORMAT, SUFFIX};
pub use wal::{LogState, Wal};
pub use writer::WriterTurns;

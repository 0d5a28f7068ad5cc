//! The bundled raft node: it speaks the etcd v3 API and implements KEP-4647, the cluster feature gate.
//!
//! `mvcc` and `cluster` are the state that every member applies entries to, the same on each; they know no clock, disk or
//! network. The log below is the crate `wal`.

pub mod api_error;
pub mod cluster;
pub mod api_error;
pub mod cluster;
pub mod config;
mod crc32c;
pub mod features;
pub mod lease;
pub mod mvcc;
mod stored;

//! The bundled raft node: it speaks the etcd v3 API and implements KEP-4647, the cluster feature gate.
//!
//! `mvcc`, `lease` and `cluster` are what every member holds; `state` is all of it, and `entry` what changes it. They know
//! no clock, disk or network, and come to the same on each member, whichever release it runs. `serve` is what clients see of
//! it. The log below is the crate `wal`.

pub mod api_error;
pub mod cluster;
pub mod config;
pub mod entry;
pub mod features;
pub mod host;
pub mod identity;
pub mod lease;
pub mod logging;
pub mod machine;
pub mod member;
pub mod migrate;
pub mod mvcc;
pub mod peer;
pub mod process;
pub mod restore;
pub mod serve;
mod slow;
pub mod state;
mod stored;
pub mod transport;

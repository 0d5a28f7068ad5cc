//! The etcd v3 API as it is on the wire, and the field's nouns as types.
//!
//! [`etcdserverpb`] and [`mvccpb`] are generated from `etcd/*.proto`, [`batonpb`] from `baton/*.proto`. Newtypes over numbers and texts of
//! that API keep ids, revisions and versions from being mixed up; [`gates`] is the client of cluster feature gates.

#![warn(missing_docs)]

pub mod gates;
mod member_id;
mod position;
mod version;

pub use member_id::{ClusterId, MemberId};
pub use position::{LeaseId, LogIndex, Revision, Term};
pub use version::{ClusterVersion, Release, VersionError};

/// `etcd/*.proto` and `baton/*.proto` as a `google.protobuf.FileDescriptorSet`.
#[cfg(feature = "server")]
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/etcd.bin"));

/// The services and messages of `etcd/rpc.proto`: keys, watches, leases, membership, maintenance.
///
/// The modules `…_server` are there with the feature `server`.
#[allow(missing_docs, clippy::all)]
pub mod etcdserverpb {
    tonic::include_proto!("etcdserverpb");
}

/// The service of `baton/members.proto`: what Baton's node tells beyond etcd's calls.
///
/// The module `members_server` is there with the feature `server`.
#[allow(missing_docs, clippy::all)]
pub mod batonpb {
    tonic::include_proto!("batonpb");
}

/// The messages of `etcd/kv.proto`: what the store holds and what a watch delivers.
#[allow(missing_docs, clippy::all)]
pub mod mvccpb {
    tonic::include_proto!("mvccpb");
}

//! Every feature there ever was, and what each minor says of it. Lines are added, and never changed: a release that is out says what
//! it said (`tests/golden/features-*.txt`), and two releases must agree about each version that both can have.
//!
//! 3.6.1, 3.8 and 3.9 are no releases yet: they are here so that a patch, a lock and a name that is dropped can be run.

use proto::ClusterVersion;

use super::{Feature, Level, Spec, Stage};

/// Remaining times of leases go through the log, so that they outlive a change of leader.
pub const LEASE_CHECKPOINT: &str = "ClusterLeaseCheckpoint";
/// What is stored and sent of large values is compressed.
pub const COMPRESSION: &str = "ClusterSnapshotCompression";
/// Keys that count: added to in one entry, without reading first.
pub const COUNTERS: &str = "ClusterCounters";
/// etcd's name for the first, which is a server's: there it states what the member wants for the cluster. No name is there on both
/// levels (KEP-4647, "Register New Feature Gates").
pub const SERVER_LEASE_CHECKPOINT: &str = "LeaseCheckpoint";
/// A member compares what it holds with what the others hold before it serves.
pub const INITIAL_CORRUPT_CHECK: &str = "InitialCorruptCheck";
/// A member calls others from the address that they reach it at.
pub const SET_MEMBER_LOCAL_ADDR: &str = "SetMemberLocalAddr";

/// The servers' own are etcd's (etcd, `DefaultEtcdServerFeatureGates`). Those with a constant above change what this node does, the
/// others nothing.
pub(super) const HISTORY: &[Feature] = &[
    cluster(LEASE_CHECKPOINT, &[alpha(6), beta(7), deprecated(8), removed(9, true)]),
    cluster(COMPRESSION, &[alpha(7), beta(8), ga(9)]),
    cluster(COUNTERS, &[Spec { default: false, ..beta(6) }, Spec { patch: 1, ..beta(6) }, beta(7), locked(8)]),
    server("CompactHashCheck", &[alpha(6)]),
    server(INITIAL_CORRUPT_CHECK, &[alpha(6)]),
    server(SERVER_LEASE_CHECKPOINT, &[alpha(6)]),
    server("LeaseCheckpointPersist", &[alpha(6)]),
    server(SET_MEMBER_LOCAL_ADDR, &[alpha(6)]),
    server("StopGRPCServiceOnDefrag", &[alpha(6)]),
    server("TxnModeWriteWithSharedBuffer", &[beta(6)]),
    server("FastLeaseKeepAlive", &[beta(7)]),
    server("PriorityRequest", &[alpha(7)]),
];

const fn cluster(name: &'static str, specs: &'static [Spec]) -> Feature {
    Feature { name, level: Level::Cluster, specs }
}

const fn server(name: &'static str, specs: &'static [Spec]) -> Feature {
    Feature { name, level: Level::Server, specs }
}

const fn alpha(since: u64) -> Spec {
    spec(since, Stage::Alpha, false)
}

const fn beta(since: u64) -> Spec {
    spec(since, Stage::Beta, true)
}

const fn ga(since: u64) -> Spec {
    spec(since, Stage::Ga, true)
}

const fn locked(since: u64) -> Spec {
    Spec { is_locked: true, ..ga(since) }
}

const fn deprecated(since: u64) -> Spec {
    Spec { stage: Stage::Deprecated, ..locked(since) }
}

/// With what it was last.
const fn removed(since: u64, default: bool) -> Spec {
    Spec { is_locked: true, ..spec(since, Stage::Removed, default) }
}

const fn spec(since: u64, stage: Stage, default: bool) -> Spec {
    Spec { since: minor(since), patch: 0, default, stage, is_locked: false }
}

pub(super) const fn minor(minor: u64) -> ClusterVersion {
    ClusterVersion { major: 3, minor }
}

//! The numbers that members, hosts and processes go by in the model: from ranges of their own, so that a hasher can
//! tell them from any other number and from each other (`digest.rs`).

use agent::keys::{ProcessId, host_id::HostId};
use proto::MemberId;

/// Above every other 64-bit number in a world but those of processes.
pub const MEMBERS: u64 = 0x6d65_6d62 << 32;
/// When the processes were started, for each of them another time; above every number of a member.
pub const PROCESSES: u64 = 0x7072_6f63 << 32;
/// Above every id that is made on the way: attempts, runs, takings of the baton.
pub const HOSTS: u128 = 0x686f_7374 << 64;
/// A lost state directory makes the next one another instance.
const NEXT_INSTANCE: u128 = 1 << 16;

pub fn id_of(node: usize) -> MemberId {
    MemberId(MEMBERS + node as u64)
}

pub fn node_of(id: MemberId) -> usize {
    (id.0 - MEMBERS) as usize
}

/// A host's machine id, and the boot id of its processes.
pub fn machine_of(host: usize) -> u128 {
    HOSTS + host as u128
}

/// The host id of a host that has lost so many state directories.
pub fn host_id(host: usize, lost: u8) -> HostId {
    HostId { machine: Some(machine_of(host)), instance: machine_of(host) + u128::from(lost) * NEXT_INSTANCE }
}

/// The id of a host whose state directory is a copy of the first one's.
pub fn copied_id() -> HostId {
    host_id(0, 0)
}

/// A process of this host, which takes for its start the number that was made for it.
pub fn process_id(host: usize, made: u128) -> ProcessId {
    ProcessId { boot_id: machine_of(host), pid_namespace: 0, pid: 0, start_time: PROCESSES + made as u64 }
}

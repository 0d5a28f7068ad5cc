//! A snapshot that takes minutes to arrive, while clients write (node/INVARIANTS.md, "Decisions that may surprise").

use std::time::Duration;

use proto::etcdserverpb::{PutRequest, kv_client::KvClient};
use tokio::time::interval;
use tonic::transport::Channel;

use super::*;

/// What the members hold comes in values of so many bytes.
const VALUE: u64 = 1_000_000;
/// Of what is written meanwhile each has so many bytes,
const WRITTEN: u64 = 256;
/// and what is around it on the way, at most.
const AROUND: u64 = 256;
const SNAPSHOT_COUNT: u64 = 1000;

/// How much there is to do.
#[derive(Clone, Copy)]
struct Size {
    /// What the members hold, in bytes.
    state: u64,
    /// What the link carries in a millisecond.
    bytes_per_ms: u64,
    /// What is written a second meanwhile.
    writes: u64,
}

const SMALL: Size = Size { state: 20_000_000, bytes_per_ms: 500, writes: 100 };
const LARGE: Size = Size { state: 100_000_000, bytes_per_ms: 1000, writes: 300 };

impl Size {
    /// Simulated seconds that one transfer takes at least.
    fn transfer_s(self) -> u64 {
        self.state / self.bytes_per_ms / 1000
    }
}

/// A follower that was away for so long that it needs a snapshot, and is reached slowly.
struct Slow {
    world: World,
    size: Size,
    leader: HostId,
    follower: HostId,
}

impl Slow {
    fn begin(size: Size) -> Self {
        let plan = Plan { members: 3, minor: 7, faults: Vec::new(), ..Plan::of(5, 60, false) };
        let plan = Plan { snapshot_count: SNAPSHOT_COUNT, catchup_entries: SNAPSHOT_COUNT / 10, ..plan };
        let mut world = World::new(plan);
        world.compares = false;
        world.clients.be_quiet();
        let mut slow = Self { world, size, leader: 0, follower: 0 };
        slow.pass(10);
        slow.leader = slow.world.leader().unwrap();
        slow.follower = if slow.leader == 1 { 2 } else { 1 };
        slow.world.machines.get_mut(&slow.follower).unwrap().kill();
        slow.write(size.state / VALUE, "large", VALUE, 20);
        slow.write(2 * SNAPSHOT_COUNT, "small", 1, 300);
        slow.pass(20);
        assert!(slow.applied(slow.leader) >= size.state / VALUE + 2 * SNAPSHOT_COUNT, "all is written");
        slow
    }

    /// Goes on for so many simulated seconds.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds * 1_000_000 / TICK {
            self.world.tick().unwrap();
        }
    }

    /// So many puts, so many a second; none waits for the one before it.
    fn write(&self, count: u64, prefix: &'static str, bytes: u64, a_second: u64) {
        self.world.clients.also(self.leader, |channel: Channel| async move {
            let mut next = interval(Duration::from_secs(1) / a_second as u32);
            for number in 0..count {
                next.tick().await;
                let (key, value) = (format!("{prefix}/{}", number % 1000).into(), vec![7; bytes as usize]);
                let mut kv = KvClient::new(channel.clone());
                tokio::spawn(async move { drop(kv.put(PutRequest { key, value, ..PutRequest::default() }).await) });
            }
        });
    }

    fn applied(&self, host: HostId) -> u64 {
        self.world.machines[&host].member().map_or(0, |member| member.read(|state| state.applied.0))
    }

    /// The leader's log, in bytes.
    fn log_bytes(&self) -> u64 {
        let files = self.world.machines[&self.leader].host.disk.files();
        files.iter().filter(|(name, _)| name.starts_with("data/wal/")).map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// Starts the follower, and gives how many bytes it was sent until it had all that was written before: of 1,000 that one
    /// transfer has. The connections break as often.
    fn arrives(mut self, breaks: u64) -> u64 {
        let Self { leader, follower, size, .. } = self;
        let (network, transfer_s) = (self.world.network.clone(), size.transfer_s());
        network.set(leader, follower, |link| link.bytes_per_ms = size.bytes_per_ms);
        let (wanted, before) = (self.applied(leader), network.delivered_to(leader, follower));
        self.write(3 * transfer_s * size.writes, "meanwhile", WRITTEN, size.writes);
        self.world.machines.get_mut(&follower).unwrap().starts_at = Some(self.world.now);
        for second in 1..=3 * transfer_s {
            self.pass(1);
            if second < transfer_s && second % (transfer_s / (breaks + 1)) == 0 {
                assert!(network.reset(leader, follower) > 0, "there is a connection to break");
            }
            if self.applied(follower) >= wanted {
                assert_eq!(self.world.leader(), Some(leader), "it leads as before");
                assert!(self.log_bytes() <= size.state + (64 << 20), "the log has {} bytes", self.log_bytes());
                let entries = second * size.writes * (WRITTEN + AROUND);
                return 1000 * (network.delivered_to(leader, follower) - before).saturating_sub(entries) / size.state;
            }
        }
        panic!("the follower has {} of {wanted} entries", self.applied(follower));
    }
}

fn arrives_in_two_transfers(size: Size) {
    let sent = Slow::begin(size).arrives(0);

    assert!(sent < 2100, "{sent} of 1000 were sent");
}

fn goes_on_where_it_was(size: Size) {
    let sent = Slow::begin(size).arrives(3);

    assert!(sent < 1100, "{sent} of 1000 were sent");
}

#[test]
fn a_snapshot_over_a_slow_link_arrives_while_clients_write() {
    arrives_in_two_transfers(SMALL);
}

#[test]
fn a_transfer_that_breaks_off_goes_on_where_it_was() {
    goes_on_where_it_was(SMALL);
}

#[test]
#[ignore = "slow: a minute and 100 MB each; 20 MB by default"]
fn a_large_snapshot_over_a_slow_link_arrives_while_clients_write() {
    arrives_in_two_transfers(LARGE);
}

#[test]
#[ignore = "slow: a minute and 100 MB each; 20 MB by default"]
fn a_large_transfer_that_breaks_off_goes_on_where_it_was() {
    goes_on_where_it_was(LARGE);
}

use bytes::Bytes;
use consensus::Machine as _;
use node::{
    cluster::member::Starts,
    entry::{Entry, EntryKind},
    machine::Proposal,
    state::ProposalId,
};
use proto::{
    MemberId,
    etcdserverpb::{AlarmType, PutRequest},
};

use super::*;

/// Goes on for so many simulated seconds, whatever the looks at the states say.
fn pass(world: &mut World, seconds: u64) {
    for _ in 0..seconds * 1_000_000 / TICK {
        let _ = world.tick();
    }
}

/// Applies an entry on one member that no log has.
fn diverge(world: &World, host: HostId) -> MemberId {
    let member = world.machines[&host].member().unwrap();
    let put = PutRequest { key: b"astray".to_vec(), value: b"here alone".to_vec(), ..PutRequest::default() };
    let id = ProposalId { member: MemberId(1), starts: Starts(1), number: 1 };
    let entry = Bytes::from(Entry::from(EntryKind::Put(put)).encode());
    let bytes = Proposal { id, settled: 1, entry }.encode().into();
    let applied = member.read(|state| state.applied.0);
    member.machine().apply(&[(applied, Some(bytes))]).unwrap();
    member.identity().member
}

/// The second net, where all others have failed (N-2).
#[test]
fn a_member_that_holds_something_else_is_found_and_named() {
    for is_leader in [false, true] {
        let plan = Plan { members: 3, minor: 7, faults: Vec::new(), ..Plan::of(5, 60, false) };
        let mut world = World::new(plan);
        pass(&mut world, 10);
        assert!(world.machines.values().all(|machine| !checks::is_alarmed(&machine.member().unwrap())));
        let leader = world.leader().unwrap();
        let host = world.machines.keys().copied().find(|host| (*host == leader) == is_leader).unwrap();
        let odd = diverge(&world, host);
        pass(&mut world, 20);
        for machine in world.machines.values() {
            let alarms = machine.member().unwrap().read(|state| state.alarms.clone());
            assert_eq!(alarms, [(odd, AlarmType::Corrupt as i32)].into(), "is the leader: {is_leader}");
        }
    }
}

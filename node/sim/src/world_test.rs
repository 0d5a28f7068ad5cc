use bytes::Bytes;
use consensus::{Content, Machine as _};
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
use crate::plan::{Part, Timed, Whom};

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
    member.machine().apply(&[(applied, Content::Command(bytes))]).unwrap();
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

/// A copy from before a start counts that start once more. Who has heard of the first one knows it from that, and what was
/// acknowledged while it was away is not lost (N-7).
#[test]
fn a_copy_from_before_a_start_that_others_have_heard_of_is_told_from_what_it_was() {
    let plan =
        Plan { members: 3, minor: 7, snapshot_count: 1000, unlucky: 1, faults: Vec::new(), ..Plan::of(5, 30, false) };
    let kill = |host, for_ms| Fault::Kill { whom: Whom::Host(host), for_ms };
    let faults = [
        (4000, Fault::PutAway),
        (4100, kill(1, 200)),
        (10_000, kill(3, 5000)),
        (14_900, kill(2, 10_000)),
        (15_000, Fault::BringBack { for_ms: 100, is_known: true }),
    ];
    let faults = faults.map(|(at_ms, fault)| Timed { at_ms, fault }).into();
    let report = World::new(Plan { faults, ..plan }).run();
    assert_eq!(report.failure, None, "{:?}", report.ends);
    assert_eq!(report.faults.get("copy of an earlier start"), Some(&1), "{:?}", report.faults);
    assert!(!report.ends.is_empty() && report.ends.iter().all(|why| why.contains("it has an older copy of it")));
}

/// Three of four voters decide, and the fourth has no machine before it is decided that it is one. So a disk goes after that.
#[test]
fn no_disk_is_lost_while_a_voter_is_under_way() {
    let mut world = World::new(Plan { members: 3, minor: 7, faults: Vec::new(), ..Plan::of(5, 30, false) });
    pass(&mut world, 10);
    let leader = world.leader().unwrap();
    world.plan.unlucky = world.machines.keys().copied().find(|host| *host != leader).unwrap();
    world.inflict(Fault::Add { is_learner: false });
    while world.machines[&leader].member().unwrap().appended_voter().is_none() {
        world.tick().unwrap();
    }
    assert!(!world.inflict(Fault::Lose { part: Part::All, for_ms: 100 }));
    let Report { failure, faults, .. } = world.run();
    assert_eq!(failure, None);
    assert_eq!(["voter added", "disk emptied"].map(|kind| faults.get(kind)), [Some(&1); 2], "{faults:?}");
}

#[test]
fn no_voter_is_added_where_a_lost_one_would_leave_no_majority() {
    for (members, is_asked) in [(3, false), (5, true)] {
        let mut world = World::new(Plan { members, minor: 7, faults: Vec::new(), ..Plan::of(5, 30, false) });
        pass(&mut world, 10);
        assert!(world.inflict(Fault::Lose { part: Part::All, for_ms: 100 }));
        pass(&mut world, 5);
        world.inflict(Fault::Add { is_learner: false });
        assert_eq!(world.addition.is_some(), is_asked, "of {members}");
    }
}

/// It waits for ever otherwise.
#[test]
fn a_newcomer_above_the_version_is_started_with_a_release_that_is_let_in() {
    for is_learner in [false, true] {
        let mut world = World::new(Plan { members: 3, minor: 6, faults: Vec::new(), ..Plan::of(5, 60, false) });
        pass(&mut world, 10);
        world.inflict(Fault::Add { is_learner });
        while !world.machines.contains_key(&4) {
            world.tick().unwrap();
        }
        // As if the version had been 3.7 just now.
        world.machines.get_mut(&4).unwrap().minor = 8;
        let report = world.run();
        assert_eq!((report.failure, report.settled), (None, 1), "is a learner: {is_learner}");
    }
}

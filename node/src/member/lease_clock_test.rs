//! The clock by itself: what it knows, and that it says nothing of what it does not know.

#![allow(clippy::unwrap_used)]

use proto::{LogIndex, etcdserverpb::LeaseGrantRequest};

use super::*;
use crate::{features::FEATURES, host::RealHost};

const LEASE: LeaseId = LeaseId(7);
const GRACE: Duration = Duration::from_secs(1);

/// A state with the one lease of a minute.
fn state() -> State {
    let mut state = State::default();
    let grant = EntryKind::LeaseGrant(LeaseGrantRequest { id: LEASE.0, ttl: 60 });
    state.apply(LogIndex(1), grant.into(), &FEATURES).unwrap();
    state
}

/// A new leader is asked before it has read what was written down of a lease: it must not take the lease for a new one,
/// nor for one that is gone.
#[test]
fn a_clock_that_stands_still_knows_of_no_lease() {
    let clock = LeaseClock::new(Arc::new(RealHost::default()));
    assert_eq!(clock.left(LEASE, 60), Err(Stopped));
    assert_eq!(clock.renew(LEASE, 60), Err(Stopped));
    clock.follow(&state(), &FEATURES, GRACE);
    assert!((59..=61).contains(&clock.left(LEASE, 60).unwrap()));
    clock.stop();
    assert_eq!(clock.left(LEASE, 60), Err(Stopped));
    assert_eq!(clock.renew(LEASE, 60), Err(Stopped));
}

#[test]
fn a_lease_that_the_clock_has_not_seen_yet_is_new() {
    let clock = LeaseClock::new(Arc::new(RealHost::default()));
    clock.follow(&State::default(), &FEATURES, GRACE);
    assert_eq!(clock.left(LEASE, 60), Ok(59));
    assert_eq!(clock.renew(LEASE, 60), Ok(true));
    clock.follow(&State::default(), &FEATURES, GRACE);
    assert_eq!(clock.left(LEASE, 30), Ok(29), "one that is gone is forgotten");
}

#[test]
fn a_lease_that_has_ended_is_not_renewed() {
    let clock = LeaseClock::new(Arc::new(RealHost::default()));
    clock.follow(&State::default(), &FEATURES, GRACE);
    assert_eq!(clock.renew(LEASE, 0), Ok(true));
    assert_eq!(clock.ended(&BTreeSet::new()), [LEASE]);
    assert_eq!(clock.ended(&BTreeSet::from([LEASE])), [], "it is being ended");
    assert_eq!(clock.renew(LEASE, 60), Ok(false));
}

#[test]
fn a_clock_follows_what_was_granted_and_revoked() {
    let clock = LeaseClock::new(Arc::new(RealHost::default()));
    let mut state = state();
    clock.follow(&state, &FEATURES, GRACE);
    let apply = |state: &mut State, index, what: EntryKind| drop(state.apply(LogIndex(index), what.into(), &FEATURES));
    apply(&mut state, 2, EntryKind::LeaseRevoke(LeaseRevokeRequest { id: LEASE.0 }));
    apply(&mut state, 3, EntryKind::LeaseGrant(LeaseGrantRequest { id: 8, ttl: 600 }));
    clock.follow(&state, &FEATURES, GRACE);
    let timed = clock.timed();
    let timed = timed.as_ref().unwrap();
    assert_eq!(timed.times.keys().collect::<Vec<_>>(), [&LeaseId(8)]);
    assert_eq!((timed.by_end.len(), timed.by_check.len()), (1, 1), "nothing is left of the other");
}

/// Between two looks: whoever has the id now has all of its own time.
#[test]
fn a_lease_whose_id_was_granted_again_is_another_one() {
    let clock = LeaseClock::new(Arc::new(RealHost::default()));
    let mut state = state();
    clock.follow(&state, &FEATURES, GRACE);
    for (index, ttl, expected) in [(2, 1000, 999..=1000), (4, 5, 4..=5), (6, 5, 4..=5)] {
        let grant = EntryKind::LeaseGrant(LeaseGrantRequest { id: LEASE.0, ttl });
        for (index, what) in [(index, EntryKind::LeaseRevoke(LeaseRevokeRequest { id: LEASE.0 })), (index + 1, grant)] {
            state.apply(LogIndex(index), what.into(), &FEATURES).unwrap();
        }
        clock.tell_apart(LEASE, state.keys.leases().get(LEASE).unwrap());
        assert_eq!(clock.left(LEASE, ttl), Ok(ttl - 1), "before the next look");
        assert_eq!(clock.renew(LEASE, ttl), Ok(true));
        clock.follow(&state, &FEATURES, GRACE);
        assert!(expected.contains(&clock.left(LEASE, ttl).unwrap()), "{ttl}");
    }
}

#[test]
fn what_a_lease_has_left_is_written_down_once_its_time_has_come() {
    let clock = LeaseClock::new(Arc::new(RealHost::default()));
    clock.follow(&state(), &FEATURES, GRACE);
    assert_eq!(clock.due(), []);
    let now = clock.now();
    clock.timed().as_mut().unwrap().set(LEASE, Times { ends: now + Duration::from_secs(20), check: now });
    let due = clock.due();
    assert!(matches!(&due[..], [LeaseCheckpoint { id: 7, remaining_ttl: 19 | 20 }]), "{due:?}");
    assert_eq!(clock.due(), [], "not again before half of what it was granted for");
    clock.timed().as_mut().unwrap().set(LEASE, Times { ends: now, check: now });
    assert_eq!(clock.due(), [], "one that has ended has nothing left");
}

//! The clock by itself: what it knows, and that it says nothing of what it does not know.

#![allow(clippy::unwrap_used)]

use proto::{LogIndex, etcdserverpb::LeaseGrantRequest};

use super::*;
use crate::features::FEATURES;

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
    let clock = LeaseClock::default();
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
    let clock = LeaseClock::default();
    clock.follow(&State::default(), &FEATURES, GRACE);
    assert_eq!(clock.left(LEASE, 60), Ok(60));
    assert_eq!(clock.renew(LEASE, 60), Ok(true));
    clock.follow(&State::default(), &FEATURES, GRACE);
    assert_eq!(clock.left(LEASE, 30), Ok(30), "one that is gone is forgotten");
}

#[test]
fn a_lease_that_has_ended_is_not_renewed() {
    let clock = LeaseClock::default();
    clock.follow(&State::default(), &FEATURES, GRACE);
    assert_eq!(clock.renew(LEASE, 0), Ok(true));
    assert_eq!(clock.ended(), [LEASE]);
    assert_eq!(clock.renew(LEASE, 60), Ok(false));
}

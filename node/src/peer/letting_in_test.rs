use std::sync::Arc;

use proto::{ClusterId, Release};
use tonic::Code;

use super::*;
use crate::{
    cluster::{entry::Entry, member::Starts, membership::Membership},
    config::JoinPolicy,
    entry::EntryKind,
    features::FEATURES,
    identity::Identity,
    machine::{Machine, Proposals},
};

const OWN: MemberId = MemberId(7);
const OTHER: MemberId = MemberId(9);

fn handshake(member: MemberId, release: Release) -> (Handshake, Machine) {
    let machine = Machine::new(release.clone(), FEATURES, Proposals::new(member, Starts(1)));
    let identity = Identity::of_none(ClusterId(1), member, release, Starts(1));
    (Handshake::new(Arc::new(identity), machine.clone(), true), machine)
}

/// Of a cluster of two at version 3.7.
fn at_3_7() -> (Handshake, Machine) {
    let (own, machine) = handshake(OWN, Release::new(3, 7, 0));
    let members = [OWN, OTHER].map(|id| (id, ("m".to_owned(), vec![]))).into();
    let version = ClusterVersion { major: 3, minor: 7 };
    let heard = [OWN, OTHER].map(|id| (id, Starts(1))).into();
    for entry in [Entry::Bootstrap { id: ClusterId(1), members }, Entry::SetVersion { version, heard }] {
        machine.apply_of_test(EntryKind::Cluster(entry));
    }
    (own, machine)
}

/// As this member hears it.
fn heard(own: &Handshake, other: &Handshake) -> Remote {
    own.caller(other.call(OWN, ()).metadata()).unwrap()
}

#[test]
fn who_is_below_the_cluster_is_heard_and_talked_to_about_nothing_else() {
    let (own, _) = at_3_7();
    let stored = heard(&own, &handshake(OTHER, Release::new(3, 5, 0)).0);
    assert!(own.judge(&stored).unwrap_err().to_string().contains("below cluster version 3.7"));
    assert!(own.talks_to(&Remote { is_new: false, ..stored.clone() }).is_ok(), "whoever has a log may know better");
    let remote = Remote { is_new: true, ..stored };
    let status = own.talks_to(&remote).unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    assert!(
        status.message().contains("member 9 may take no part: it runs 3.5.0, below cluster version 3.7"),
        "{status}"
    );
    let remote = heard(&own, &handshake(OTHER, Release::new(3, 7, 1)).0);
    assert!(own.judge(&remote).is_ok() && own.talks_to(&remote).is_ok());
    assert_eq!(own.heard()[&OTHER].release, Release::new(3, 7, 1), "the last words count");
}

#[test]
fn a_joiner_believes_the_version_that_it_hears() {
    let (member, _) = at_3_7();
    let (joiner, _) = handshake(OTHER, Release::new(3, 6, 0));
    let remote = joiner.answerer(OWN, member.answer(()).metadata()).unwrap();
    assert!(joiner.judge_own(&remote).unwrap_err().to_string().contains("below cluster version 3.7"));
    assert_eq!(remote.version, Some(ClusterVersion { major: 3, minor: 7 }));
}

#[test]
fn who_waits_talks_to_nobody_and_says_so() {
    let (own, _) = at_3_7();
    let (other, _) = handshake(OTHER, Release::new(3, 7, 0));
    own.wait();
    assert_eq!(own.talks_to(&heard(&own, &other)).unwrap_err().code(), Code::Unavailable);
    assert!(other.answerer(OWN, own.answer(()).metadata()).unwrap().waits);
    own.let_in();
    assert!(own.talks_to(&heard(&own, &other)).is_ok());
    assert!(!other.answerer(OWN, own.answer(()).metadata()).unwrap().waits);
}

/// Whoever runs keeps running: that it may not come in anew is said when it is started.
#[test]
fn a_strict_member_refuses_another_release_and_does_not_cut_it_off() {
    let (own, _) = at_3_7();
    let own = own.demanding(JoinPolicy::Strict);
    let remote = heard(&own, &handshake(OTHER, Release::new(3, 7, 1)).0);
    assert!(own.judge(&remote).unwrap_err().to_string().contains("equal releases only"));
    assert!(own.talks_to(&remote).is_ok());
}

#[test]
fn a_new_member_of_a_lower_release_waits_until_the_log_begins_behind_what_it_does_not_know() {
    let (own, machine) = at_3_7();
    let version = ClusterVersion { major: 3, minor: 6 };
    let heard_of = [OWN, OTHER].map(|id| (id, Starts(1))).into();
    for entry in [Entry::Downgrade { to: Some(version) }, Entry::SetVersion { version, heard: heard_of }] {
        machine.apply_of_test(EntryKind::Cluster(entry));
    }
    let behind = machine.read(|state| state.cluster.behind).unwrap();
    let known = heard(&own, &handshake(OTHER, Release::new(3, 6, 0)).0);
    let new = Remote { is_new: true, ..known.clone() };
    assert!(own.judge(&known).is_ok(), "what it has it need not replay");
    assert!(own.judge(&new).is_err() && own.talks_to(&new).is_err());
    own.log_begins_behind(behind);
    assert!(own.judge(&new).is_ok() && own.talks_to(&new).is_ok());
}

#[test]
fn who_is_no_member_any_more_is_forgotten() {
    let (own, machine) = at_3_7();
    heard(&own, &handshake(OTHER, Release::new(3, 7, 0)).0);
    assert_eq!(own.heard().len(), 1);
    machine.follow_of_test(&Membership { voters: [OWN].into(), peer_urls: [(OWN, vec![])].into() });
    assert!(own.heard().is_empty());
}

#[test]
fn who_was_left_out_when_the_others_went_down_is_talked_to_by_none_of_them() {
    let lower = |machine: &Machine| machine.lower_to(ClusterVersion { major: 3, minor: 6 });
    for (own_went, other_went, other_is_new, out) in [
        (false, false, false, None),
        (true, true, false, None),
        (true, false, false, Some("member 9 was left out when member 7")),
        (false, true, false, Some("member 7 was left out when member 9")),
        (true, false, true, None), // it has no state, and is given one
    ] {
        let (own, machine) = at_3_7();
        let (other, others) = at_3_7();
        if own_went {
            lower(&machine);
        }
        if other_went {
            lower(&others);
        }
        let remote = heard(&own, &other);
        let version = remote.version.filter(|_| !other_is_new);
        let remote = Remote { member: OTHER, version, ..remote };
        let said = own.talks_to(&remote);
        let case = (own_went, other_went, other_is_new);
        match out {
            None => assert!(said.is_ok(), "{case:?}: {said:?}"),
            Some(words) => assert!(said.unwrap_err().message().contains(words), "{case:?}"),
        }
    }
}

use proto::ClusterVersion;

use super::*;
use crate::{
    cluster::{
        entry::Entry::Publish,
        member::{Attributes, Proposal, Starts},
    },
    features::{FEATURES, Features},
};

const V3_6: ClusterVersion = ClusterVersion { major: 3, minor: 6 };
const STRICT: Rules = Rules { is_strict: true, max_learners: 1, registry: FEATURES };

fn urls(id: u64) -> Vec<String> {
    vec![format!("http://m{id}:2380")]
}

fn proposing(features: &[(&str, bool)]) -> Option<Proposal> {
    let features: Features = features.iter().map(|(name, is_on)| ((*name).to_owned(), *is_on)).collect();
    Some(Proposal { version: V3_6, features })
}

/// So many started voters at 3.6, with one feature on that all want.
fn cluster(voters: u64) -> Cluster {
    let member = |id| Member {
        peer_urls: urls(id),
        client_urls: vec!["http://c".into()],
        starts: Starts(1),
        proposal: proposing(&[("A", true)]),
        ..Member::default()
    };
    let mut cluster = Cluster {
        version: Some(V3_6),
        members: (1..=voters).map(|id| (MemberId(id), member(id))).collect(),
        inputs: LogIndex(5),
        ..Cluster::default()
    };
    cluster.gate = Gate::Decided(cluster.reconciled().unwrap());
    cluster
}

/// These answer, and lack nothing.
fn heard(ids: &[u64]) -> Lags {
    ids.iter().map(|id| (MemberId(*id), 0)).collect()
}

fn add(id: u64, is_learner: bool) -> Change {
    Change::Add { id: MemberId(id), peer_urls: urls(id), is_learner }
}

/// Makes the change as raft would.
fn made(cluster: &mut Cluster, at: u64, change: &Change, lags: &Lags) {
    let to = cluster.changed(change, STRICT, lags).unwrap();
    assert!(cluster.follow(LogIndex(at), &to), "{change:?}");
    assert!(!cluster.follow(LogIndex(at + 1), &to), "the same again is no news");
}

#[test]
fn a_new_voter_turns_everything_off_until_it_has_spoken_and_a_learner_nothing() {
    let mut cluster = cluster(3);
    let before = (cluster.gate.clone(), cluster.inputs);
    made(&mut cluster, 10, &add(4, true), &heard(&[1, 2, 3]));
    assert_eq!((cluster.gate.clone(), cluster.inputs), before, "a learner");
    assert!(cluster.members[&MemberId(4)].is_learner);
    let attributes = Attributes { proposal: proposing(&[("A", false)]), ..Attributes::default() };
    let (starts, start_id, incarnation) = (Starts(1), None, None);
    cluster.apply(LogIndex(15), Publish { member: MemberId(4), starts, start_id, incarnation, attributes });
    assert!(cluster.members[&MemberId(4)].proposal.is_some(), "D-06: what it wants is stored,");
    assert_eq!((cluster.inputs, cluster.reconciled().unwrap().get("A")), (before.1, Some(true)), "and does not count");
    made(&mut cluster, 20, &add(5, false), &heard(&[1, 2, 3]));
    assert_eq!((&cluster.gate, cluster.inputs), (&Gate::Undecided, LogIndex(20)), "K-32");
    assert_eq!(cluster.reconciled(), None, "the new one has not proposed");
}

#[test]
fn who_is_removed_takes_its_proposal_along_and_is_never_a_member_again() {
    let mut cluster = cluster(3);
    cluster.members.get_mut(&MemberId(2)).unwrap().proposal = proposing(&[("A", false)]);
    cluster.gate = Gate::Decided(cluster.reconciled().unwrap());
    assert_eq!(cluster.gate.get("A"), Some(false));
    made(&mut cluster, 10, &Change::Remove(MemberId(2)), &heard(&[1, 2, 3]));
    assert_eq!(cluster.inputs, LogIndex(10), "decided again, K-31");
    assert_eq!(cluster.reconciled().unwrap().get("A"), Some(true), "A-15");
    let again = cluster.changed(&add(2, true), STRICT, &heard(&[1, 3]));
    assert_eq!(again, Err(ApiError::MemberExists), "its id is used up");
}

#[test]
fn who_is_promoted_has_proposed_or_else_the_gate_is_reset() {
    let mut cluster = cluster(3);
    made(&mut cluster, 10, &add(4, true), &heard(&[1, 2, 3]));
    let promote = Change::Promote(MemberId(4));
    let all = heard(&[1, 2, 3, 4]);
    let asked = |cluster: &Cluster, lags: &Lags| cluster.changed(&promote, STRICT, lags).map(|to| to.voters.len());
    assert_eq!(asked(&cluster, &all), Err(ApiError::LearnerNotReady), "not started");
    let learner = cluster.members.get_mut(&MemberId(4)).unwrap();
    learner.starts = Starts(1);
    assert_eq!(asked(&cluster, &all), Err(ApiError::LearnerNotReady), "A-12: it has proposed nothing");
    cluster.members.get_mut(&MemberId(4)).unwrap().proposal = proposing(&[("A", false)]);
    assert_eq!(asked(&cluster, &all), Err(ApiError::LearnerTurnsOff), "A-11");
    cluster.members.get_mut(&MemberId(4)).unwrap().proposal = proposing(&[("A", true)]);
    assert_eq!(asked(&cluster, &heard(&[1, 2, 3])), Err(ApiError::LearnerNotReady), "not heard");
    let behind = all.keys().map(|id| (*id, if id.0 == 4 { IN_SYNC + 1 } else { 0 })).collect();
    assert_eq!(asked(&cluster, &behind), Err(ApiError::LearnerNotReady), "behind");
    assert_eq!(asked(&cluster, &all), Ok(4));
    let gate = cluster.gate.clone();
    // One that slips through, as apply asks nobody.
    let (mut slipped, to) = (cluster.clone(), cluster.changed(&promote, STRICT, &all).unwrap());
    slipped.members.get_mut(&MemberId(4)).unwrap().proposal = None;
    slipped.follow(LogIndex(20), &to);
    assert_eq!((&slipped.gate, slipped.inputs), (&Gate::Undecided, LogIndex(20)));
    cluster.follow(LogIndex(20), &to);
    assert_eq!((&cluster.gate, cluster.inputs), (&gate, LogIndex(20)), "it wants what is on");
    assert_eq!(asked(&cluster, &all), Err(ApiError::NotALearner));
}

#[test]
fn a_new_learner_that_differs_from_what_is_decided_may_not_join() {
    let mut cluster = cluster(3);
    made(&mut cluster, 10, &add(4, true), &heard(&[1, 2, 3]));
    let asked = |cluster: &Cluster, id, wants| {
        let differs = cluster.differs(MemberId(id), &proposing(wants).unwrap().features, &FEATURES);
        differs.map(|differs| (differs.feature, differs.is_on))
    };
    let (a, b) = (Some(("A".to_owned(), true)), Some(("B".to_owned(), false)));
    for (wants, differs) in [
        (&[("A", true)][..], None),
        (&[("A", true), ("B", false)], None),
        (&[("A", false)], a.clone()),
        (&[], a), // it does not know it
        (&[("A", true), ("B", true)], b),
    ] {
        assert_eq!(asked(&cluster, 4, wants), differs, "{wants:?}");
    }
    assert_eq!(asked(&cluster, 1, &[]), None, "a voter");
    cluster.members.get_mut(&MemberId(4)).unwrap().starts = Starts(1);
    assert_eq!(asked(&cluster, 4, &[]), None, "it is known");
    cluster.members.get_mut(&MemberId(4)).unwrap().starts = Starts(0);
    cluster.gate = Gate::Undecided;
    assert_eq!(asked(&cluster, 4, &[]), None, "nothing is decided");
}

#[test]
fn the_voters_are_those_that_raft_names_and_a_cluster_is_founded_first() {
    let mut cluster = cluster(3);
    let to = |voters: &[u64]| Membership {
        voters: voters.iter().map(|id| MemberId(*id)).collect(),
        peer_urls: voters.iter().map(|id| (MemberId(*id), urls(*id))).collect(),
    };
    cluster.follow(LogIndex(10), &to(&[1, 2, 3, 4]));
    assert_eq!((cluster.voters().count(), &cluster.gate), (4, &Gate::Undecided));
    cluster.follow(LogIndex(11), &to(&[1, 2, 4]));
    assert_eq!(cluster.voters().map(|(id, _)| id.0).collect::<Vec<_>>(), [1, 2, 4]);
    let mut new = Cluster::default();
    assert!(!new.follow(LogIndex(1), &to(&[1, 2, 3])), "it is not founded yet");
    assert_eq!(new, Cluster::default());
}

#[test]
fn what_would_leave_no_quorum_is_refused_in_etcd_s_words() {
    let unstarted = |voters: u64, missing: &[u64]| {
        let mut cluster = cluster(voters);
        for id in missing {
            cluster.members.insert(MemberId(*id), Member { peer_urls: urls(*id), ..Member::default() });
        }
        cluster
    };
    let remove = |id| Change::Remove(MemberId(id));
    let taken = Change::Add { id: MemberId(9), peer_urls: urls(2), is_learner: false };
    let lenient = Rules { is_strict: false, ..STRICT };
    for (cluster, change, answer, rules, refused) in [
        (cluster(1), add(2, false), &[1][..], STRICT, None),
        (unstarted(1, &[2]), add(3, false), &[1], STRICT, Some(ApiError::NotEnoughStarted)),
        (unstarted(1, &[2]), add(3, false), &[1], lenient, Some(ApiError::Unhealthy)),
        (cluster(3), add(4, false), &[1, 2, 3], STRICT, None),
        (cluster(3), add(4, false), &[1, 2], STRICT, Some(ApiError::Unhealthy)),
        (cluster(3), add(4, true), &[1, 2], STRICT, Some(ApiError::Unhealthy)),
        (cluster(4), add(5, true), &[1, 2, 3], STRICT, None),
        (cluster(5), add(6, false), &[1, 2, 3, 4], STRICT, None),
        (cluster(5), add(6, true), &[1, 2, 3], STRICT, Some(ApiError::Unhealthy)),
        (cluster(3), add(2, false), &[1, 2, 3], STRICT, Some(ApiError::MemberExists)),
        (cluster(3), taken, &[1, 2, 3], STRICT, Some(ApiError::PeerUrlExists)),
        (cluster(3), remove(4), &[1, 2, 3], STRICT, Some(ApiError::MemberNotFound)),
        (cluster(3), remove(3), &[1, 2, 3], STRICT, None),
        (cluster(3), remove(3), &[1, 2], STRICT, None), // it is down
        (cluster(3), remove(2), &[1, 2], STRICT, Some(ApiError::Unhealthy)),
        (cluster(3), remove(2), &[1, 2], lenient, Some(ApiError::Unhealthy)), // nobody could commit it
        (cluster(3), add(4, false), &[1, 2], lenient, Some(ApiError::Unhealthy)),
        (cluster(3), add(4, true), &[1, 2], lenient, None),
        (unstarted(2, &[3]), remove(2), &[1, 2], STRICT, Some(ApiError::NotEnoughStarted)),
        (unstarted(2, &[3]), remove(3), &[1, 2], STRICT, None),
        (cluster(1), remove(1), &[1], lenient, Some(ApiError::NotEnoughStarted)),
        (cluster(2), Change::Promote(MemberId(2)), &[1, 2], STRICT, Some(ApiError::NotALearner)),
        (cluster(2), Change::Promote(MemberId(7)), &[1, 2], STRICT, Some(ApiError::MemberNotFound)),
    ] {
        let outcome = cluster.changed(&change, rules, &heard(answer));
        assert_eq!(outcome.err(), refused, "{change:?} of {} where {answer:?} answer", cluster.members.len());
    }
    let mut one = cluster(3);
    made(&mut one, 10, &add(4, true), &heard(&[1, 2, 3]));
    let more = |rules| one.changed(&add(5, true), rules, &heard(&[1, 2, 3])).err();
    assert_eq!(more(STRICT), Some(ApiError::TooManyLearners));
    assert_eq!(more(Rules { max_learners: 2, ..STRICT }), None);
}

//! The way down, by the entries that leader and members propose for it.

use super::*;
use crate::{api_error::ApiError, cluster::downgrade::LOWEST};

/// Three members that have settled at the version of this release.
fn settled(release: &'static str) -> Bench {
    let mut bench = Bench::new([release; 3]).flag(0, LEASE_CHECKPOINT, true).flag(1, LEASE_CHECKPOINT, true).flag(
        2,
        LEASE_CHECKPOINT,
        true,
    );
    bench.settle();
    assert!(bench.is_on(LEASE_CHECKPOINT));
    bench
}

fn enable(bench: &mut Bench, to: ClusterVersion) {
    assert!(bench.apply(Entry::Downgrade { to: Some(to) }));
}

#[test]
fn gate_first_then_version_then_what_members_want_there() {
    let mut bench = settled("3.7.0");
    let before = LogIndex(bench.index);
    enable(&mut bench, V3_6);
    assert_eq!(bench.cluster.storage_version(before), Some(V3_7), "nothing is lowered yet");
    let done = bench.settle();
    assert!(
        matches!(&done[..2], [Entry::Reset { prepares: V3_6 }, Entry::SetVersion { version: V3_6, .. }]),
        "{done:?}"
    );
    assert!(matches!(done.last(), Some(Entry::Decide { .. })), "{done:?}");
    assert_eq!(bench.cluster.version, Some(V3_6));
    let Gate::Decided(features) = &bench.cluster.gate else { panic!("undecided") };
    assert_eq!(features.names().collect::<Vec<_>>(), [LEASE_CHECKPOINT, "Locked"], "3.6 knows no other");
    assert!(bench.is_on(LEASE_CHECKPOINT));

    let lowered = bench.cluster.behind.expect("lowered");
    assert_eq!(bench.cluster.storage_version(LogIndex(lowered.0 - 1)), Some(V3_7), "3.6 would replay what 3.7 shaped");
    assert_eq!(bench.cluster.storage_version(lowered), Some(V3_6));

    for member in 0..3 {
        assert_eq!(bench.cluster.downgrade, Some(V3_6), "until the last member");
        bench.restart(member, "3.6.0");
        bench.settle();
        assert_eq!(bench.cluster.version, Some(V3_6));
    }
    assert_eq!(bench.cluster.downgrade, None, "it is where it leads to");
    assert_eq!(bench.settle(), [], "and nothing rises again");
}

#[test]
fn below_the_first_version_with_gates_nothing_is_on_and_nobody_proposes() {
    let mut bench = settled("3.6.0");
    enable(&mut bench, V3_5);
    let done = bench.settle();
    assert!(matches!(&done[..], [Entry::Reset { .. }, Entry::SetVersion { version: V3_5, .. }]), "{done:?}");
    assert_eq!((&bench.cluster.gate, bench.is_on(LEASE_CHECKPOINT)), (&Gate::Undecided, false));
    assert!(bench.cluster.members.values().all(|member| member.proposal.is_none()));
}

#[test]
fn a_silent_member_holds_the_version_where_it_is() {
    let mut bench = settled("3.6.0");
    enable(&mut bench, V3_5);
    let mut heard = bench.heard();
    heard.remove(&id(2));
    assert_eq!(of_leader(&bench.cluster, &heard), None);
    let one = BTreeMap::from([(id(1), Starts(1)), (id(3), Starts(1))]);
    assert!(!bench.apply(Entry::SetVersion { version: V3_5, heard: one }), "nor is it decided without it");
}

#[test]
fn nothing_rises_while_one_is_enabled_and_nothing_falls_without() {
    let mut bench = settled("3.6.0");
    let heard: BTreeMap<_, _> = (1..=3).map(|number| (id(number), Starts(9))).collect();
    assert!(!bench.apply(Entry::SetVersion { version: V3_5, heard: heard.clone() }));
    enable(&mut bench, V3_5);
    (0..3).for_each(|member| bench.restart(member, "3.7.0"));
    assert!(!bench.apply(Entry::SetVersion { version: V3_7, heard: heard.clone() }));
    let mut done = bench.settle();
    assert_eq!(bench.cluster.version, Some(V3_5), "{done:?}");
    assert!(!bench.apply(Entry::SetVersion { version: V3_6, heard }));

    assert!(bench.apply(Entry::Downgrade { to: None }), "cancelled");
    done = bench.settle();
    assert_eq!((bench.cluster.version, bench.cluster.behind), (Some(V3_7), None), "{done:?}");
    assert!(bench.is_on(LEASE_CHECKPOINT));
}

#[test]
fn a_cancelled_one_rises_again_only_when_nobody_is_lowered_any_more() {
    let mut bench = settled("3.6.0");
    enable(&mut bench, V3_5);
    bench.settle();
    bench.restart(0, "3.5.0");
    bench.settle();
    assert!(bench.apply(Entry::Downgrade { to: None }));
    assert!(!bench.apply(Entry::Downgrade { to: None }), "once");
    bench.settle();
    assert_eq!(bench.cluster.version, Some(V3_5));
    bench.restart(0, "3.6.0");
    bench.settle();
    assert_eq!(bench.cluster.version, Some(V3_6));
    assert!(bench.is_on(LEASE_CHECKPOINT));
}

#[test]
fn one_minor_down_to_a_release_that_there_is() {
    let mut bench = Bench::new(["3.7.0"; 3]);
    let asked = |bench: &Bench, target| bench.cluster.may_go_down_to(target);
    assert_eq!(asked(&bench, V3_6), Err(ApiError::ClusterVersionUnavailable));
    bench.settle();
    for wrong in [V3_5, V3_7] {
        assert_eq!(asked(&bench, wrong), Err(ApiError::InvalidDowngradeTarget), "{wrong}");
        assert!(!bench.apply(Entry::Downgrade { to: Some(wrong) }), "{wrong}");
    }
    assert_eq!(asked(&bench, V3_6), Ok(()));
    enable(&mut bench, V3_6);
    assert_eq!(asked(&bench, V3_6), Err(ApiError::DowngradeInProcess));
    assert!(!bench.apply(Entry::Downgrade { to: Some(V3_6) }));

    let mut lowest = Bench::new(["3.5.0"; 3]);
    lowest.settle();
    let below = ClusterVersion { minor: LOWEST.minor - 1, ..LOWEST };
    assert_eq!(asked(&lowest, below), Err(ApiError::InvalidDowngradeTarget));
}

/// Whoever leads after it looks at what is. While one is silent the version stays, and members' wishes with it: what they come to is on
/// again meanwhile, or one that is down would keep every feature off.
#[test]
fn after_a_dead_leader_s_reset_there_is_a_second_one_only_where_the_gate_was_decided_again() {
    let mut bench = settled("3.7.0");
    enable(&mut bench, V3_6);
    let before = bench.cluster.gate.clone();
    let reset = of_leader(&bench.cluster, &bench.heard()).unwrap();
    assert_eq!(reset, Entry::Reset { prepares: V3_6 });
    assert!(bench.apply(reset.clone()));
    assert!(!bench.apply(reset.clone()), "proposed twice, as the first was late");
    let lowers = of_leader(&bench.cluster, &bench.heard()).unwrap();
    assert!(matches!(lowers, Entry::SetVersion { version: V3_6, .. }), "{lowers:?}");

    let mut heard = bench.heard();
    heard.remove(&id(2));
    let again = of_leader(&bench.cluster, &heard).unwrap();
    let mut lowered = bench.cluster.clone();
    assert!(lowered.apply(LogIndex(90), lowers) && !lowered.apply(LogIndex(91), again.clone()), "it comes too late");
    assert!(bench.apply(again));
    assert_eq!((bench.cluster.version, &bench.cluster.gate), (Some(V3_7), &before));
    assert_eq!(of_leader(&bench.cluster, &heard), None, "nothing more, for as long as it is silent");
    let done = bench.settle();
    assert!(matches!(&done[..2], [first, Entry::SetVersion { version: V3_6, .. }] if *first == reset), "{done:?}");
    assert!(bench.is_on(LEASE_CHECKPOINT));
}

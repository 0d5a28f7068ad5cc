use proto::Revision;

use super::*;
use crate::{
    keys::{RunState, host_record::Mark, rules::Rules},
    plan::{Next, next, samples},
};

const M1: MemberId = MemberId(1);
const M2: MemberId = MemberId(2);

fn host(instance: u128) -> HostId {
    HostId { machine: None, instance }
}

fn running(member: MemberId) -> HostRecord {
    HostRecord::joining("h".into()).holding(member).in_phase(Phase::Running)
}

fn marked(record: &HostRecord) -> HostRecord {
    HostRecord { mark: Some(Mark { by: "ops".into(), why: "old".into() }), ..record.clone() }
}

fn other() -> Hold {
    Hold { name: "backup".into(), owner: "ops".into(), why: "".into() }
}

fn keys(records: impl IntoIterator<Item = (u128, HostRecord)>) -> Keys {
    let at = |value| At { created: Revision(1), modified: Revision(1), value };
    Keys { hosts: records.into_iter().map(|(id, record)| (host(id), at(record))).collect(), ..Keys::default() }
}

///
#[test]
fn protection_is_on_once_a_host_runs() {
    let joining = HostRecord::joining("h".into());
    for (records, on) in [
        (vec![], false),
        (vec![joining.clone()], false),
        (vec![running(M1).left()], false),
        (vec![joining, running(M1)], true),
    ] {
        assert_eq!(is_on(&keys((1..).zip(records.clone()))), on, "{records:?}");
    }
}

///
#[test]
fn a_hold_is_put_back_but_on_a_host_that_is_to_go() {
    let name = "h".into();
    assert_eq!(adopted(None, &name, &[M1]), running(M1));
    assert_eq!(adopted(Some(&running(M1).without_hold(QUORUM)), &name, &[M1]), running(M1));
    let let_go = marked(&running(M1)).without_hold(QUORUM);
    assert_eq!(adopted(Some(&let_go), &name, &[M1]), let_go);
    assert_eq!(adopted(Some(&marked(&running(M1))), &name, &[M1]), marked(&running(M1)));
    assert_eq!(adopted(Some(&running(M2).with_hold(other()).left()), &name, &[M1]), running(M1));
}

#[test]
fn one_that_stays_after_all_is_held() {
    for (record, listed, expected) in [
        (marked(&running(M1)), vec![M1], running(M1)),
        (marked(&running(M1)).without_hold(QUORUM), vec![M1], running(M1)),
        (marked(&running(M1)).without_hold(QUORUM), vec![M2], running(M1).without_hold(QUORUM)),
    ] {
        assert_eq!(unmarked(&record, &listed.into_iter().collect()), expected, "{record:?}");
    }
}

///
#[test]
fn a_hold_is_lifted_once_the_member_is_out() {
    let held = marked(&running(M1)).with_hold(other());
    let found = |record: &HostRecord, listed: &[MemberId]| {
        out_of_date(&keys([(1, record.clone())]), |id| listed.contains(&id), None).and_then(|(_, record)| record)
    };
    assert_eq!(found(&held, &[M1, M2]), None);
    let left = found(&held, &[M2]).unwrap();
    assert_eq!((left.phase, left.is_marked(), left.is_held()), (Phase::Left, false, false));
    assert_eq!(left.others_hold(), Some(&other()), "it is its owner's");
    assert_eq!(found(&left, &[M2]), None);
    let two = running(M1).holding(M2);
    assert_eq!(found(&two, &[M2]), Some(running(M2)), "it carries another one yet");
}

#[test]
fn hosts_that_have_left_are_forgotten_once_there_are_many() {
    let left = |count: u128| (1..=count).map(|id| (id, running(M1).left()));
    let found = |count| out_of_date(&keys(left(count)), |_| false, None);
    assert_eq!(found(16), None);
    assert_eq!(found(17), Some((host(1), None)));
    let held = left(17).map(|(id, record)| (id, record.with_hold(other())));
    assert_eq!(out_of_date(&keys(held), |_| false, None), None, "somebody wants to be asked");
}

///
#[test]
fn a_host_may_go_once_nothing_keeps_it() {
    let listed = [M1].into();
    let carries = Some(Stays::Carries(vec![M1]));
    for (record, expected) in [
        (running(M1), carries.clone()),
        (marked(&running(M1)), carries),
        (running(M1).with_hold(other()), Some(Stays::Held(other()))),
        (running(M1).left().with_hold(other()), Some(Stays::Held(other()))),
        (marked(&running(M1)).without_hold(QUORUM), None),
        (running(M1).without_hold(QUORUM), Some(Stays::Carries(vec![M1]))),
        (running(M2), None),
        (running(M1).left(), None),
    ] {
        assert_eq!(stays(host(1), &record, &listed, None), expected, "{record:?}");
    }
}

///
#[test]
fn all_hosts_but_one_stay_up_and_a_quorum_in_any_case() {
    let hosts = |count: u64| keys((1..=count).map(|id| (u128::from(id), running(MemberId(id)))));
    for (count, voters, ready, expected) in
        [(3, 3, 3, 1), (3, 3, 2, 0), (4, 3, 3, 0), (5, 5, 5, 1), (2, 2, 2, 0), (1, 1, 1, 0), (0, 3, 3, 1)]
    {
        assert_eq!(budget(&hosts(count), voters, ready), expected, "{count} hosts, {ready} of {voters}");
    }
}

///
#[test]
fn an_upgrade_goes_as_it_would_without_any_record() {
    let (me, rules, view) = (samples::me(&[1]), Rules::default(), samples::view("1+ 2+ 3*"));
    let hosts = keys([(1, marked(&running(M1).with_hold(other()))), (2, running(M2))]).hosts;
    for state in [None, Some(RunState::Rolling)] {
        let without = Keys { run: state.map(|state| samples::at(samples::run(state))), ..Keys::default() };
        let with = Keys { hosts: hosts.clone(), ..without.clone() };
        let [without, with] = [without, with].map(|keys| next(&samples::case(&me, &rules, &keys, &view)));
        assert_eq!(with, without);
        assert!(matches!(with, Next::Begin | Next::Step(_)), "{with:?}");
    }
}

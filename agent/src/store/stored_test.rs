use proto::{ClusterId, Release, Revision};

use super::*;
use crate::{
    keys::{
        AttemptId, Finalize, Going, Intent, ProcessId, RunId, RunState, TakeId,
        change::{Change, Upgrade},
        host_record::Mark,
        rules::Rules,
        seat::Seats,
    },
    unknown::Unknown,
};

fn host() -> HostId {
    HostId { machine: Some(0xa), instance: 0xb }
}

fn process() -> ProcessId {
    ProcessId { boot_id: 7, pid_namespace: 1, pid: 8, start_time: 9 }
}

fn run(state: RunState) -> Run {
    let change = Change::Upgrade(Upgrade { from: ">=3.4, <3.5".parse().unwrap(), to: Release::new(3, 5, 30) });
    let gates = [("LeaseCheckpoint".to_owned(), true)].into();
    let intent = Intent {
        cluster: ClusterId(0xc),
        change,
        gates,
        finalize: Finalize::Manual,
        accepted_hazards: Default::default(),
        backup: false,
        hops: None,
    };
    Run {
        id: RunId(1),
        intent: intent.into(),
        state,
        changes_minor: true,
        done: vec![MemberId(3)],
        begun_by: None,
        membership: None,
        backup: None,
        pause: None,
        unknown: Unknown::default(),
    }
}

fn record() -> StepLock {
    let (member, attempt) = (MemberId(0x8e9e_05c5_2164_694d), AttemptId(u128::MAX));
    StepLock {
        member,
        host: host(),
        host_name: "h1".into(),
        attempt,
        process: process(),
        back: true,
        guarded: None,
        role: None,
        unknown: Unknown::default(),
    }
}

/// What the store would hold after these puts.
fn stored(ops: &[store::Op]) -> Snapshot {
    let raw = |op: &store::Op| match op {
        store::Op::Put { key, value, lease } => RawKey {
            key: key.clone(),
            value: value.clone(),
            created: Revision(4),
            modified: Revision(5),
            lease: *lease,
        },
        store::Op::Delete { key } => panic!("{key} is deleted"),
    };
    Snapshot { revision: Revision(5), keys: ops.iter().map(raw).collect() }
}

#[test]
fn what_is_written_is_read_back() {
    let failed = RunState::Failed { member: MemberId(1), why: "it \"broke\"".into(), was: Going::Approved };
    let participant = Participant {
        host_name: "h1".into(),
        process: process(),
        seats: Seats::on(host(), [(Arc::from("m1"), MemberId(1))]),
        done: vec![],
        waits_for: Some("x".into()),
        waits_since: Some("2026-11-29T08:15:00.123Z".into()),
        waits_until: Some("y".into()),
        does: None,
        backed_up: None,
        is_closed: false,
        unknown: Unknown::default(),
    };
    let baton = Baton {
        host: host(),
        process: process(),
        host_name: "h1".into(),
        take: TakeId(u128::MAX),
        unknown: Unknown::default(),
    };
    let mark = Mark { by: "ops".into(), why: "\u{1b}old".into() };
    let kept = HostRecord { mark: Some(mark), ..HostRecord::joining("h1".into()).holding(MemberId(1)) };
    let ops = vec![
        Op::PutRun(run(failed.clone())),
        Op::PutAgent(host(), participant.clone()),
        Op::PutBaton(baton.clone()),
        Op::PutStepLock(record()),
        Op::PutAbandoned(record()),
        Op::PutHost(host(), kept.clone()),
    ];
    let (_, ops) = txn(&Txn { compares: vec![], ops }, Some(LeaseId(77)));
    let read = keys(&stored(&ops)).unwrap();
    let at = |created| (created, Revision(5));
    let found = read.run.unwrap();
    assert_eq!((found.value, (found.created, found.modified)), (run(failed), at(Revision(4))));
    assert_eq!(read.agents[&host()].value, participant);
    assert_eq!(read.baton.unwrap().value, baton);
    assert_eq!(read.step.unwrap().value, record());
    assert_eq!(read.abandoned[&record().member].value, record());
    assert_eq!(read.hosts[&host()].value, kept);
    let leases: Vec<_> = stored(&ops).keys.iter().map(|key| (key.key.clone(), key.lease)).collect();
    insta::assert_debug_snapshot!(leases, @r#"
    [
        (
            "run",
            None,
        ),
        (
            "agents/0000000000000000000000000000000a-0000000000000000000000000000000b",
            Some(
                LeaseId(
                    77,
                ),
            ),
        ),
        (
            "baton",
            Some(
                LeaseId(
                    9223372036854775807,
                ),
            ),
        ),
        (
            "step",
            None,
        ),
        (
            "abandoned/8e9e05c52164694d",
            None,
        ),
        (
            "hosts/0000000000000000000000000000000a-0000000000000000000000000000000b",
            None,
        ),
    ]
    "#);
}

#[test]
fn compares_name_the_key_and_the_revision() {
    let at = At { created: Revision(4), modified: Revision(9), value: run(RunState::Rolling) };
    let (compares, ops) = txn(&Txn::put_down(Revision(3), &at, record(), &Rules::default()), None);
    let expected = [
        store::Compare::Created("baton".into(), Revision(3)),
        store::Compare::Modified("run".into(), Revision(9)),
        store::Compare::Created("step".into(), Revision(0)),
    ];
    assert_eq!(compares, expected);
    assert_eq!(ops.len(), 1);
}

fn raw(key: &str, value: &str, lease: Option<LeaseId>) -> RawKey {
    let (created, modified) = (Revision(1), Revision(7));
    RawKey { key: key.into(), value: value.into(), created, modified, lease }
}

fn read(keys: impl IntoIterator<Item = RawKey>) -> Result<Keys, StoredError> {
    super::keys(&Snapshot { revision: Revision(7), keys: keys.into_iter().collect() })
}

/// What a put holds with more in it, as a newer agent would have written it.
fn by_a_newer_agent(op: &Op) -> RawKey {
    let (_, ops) = txn(&Txn { compares: vec![], ops: vec![op.clone()] }, Some(LeaseId(7)));
    let mut raw = stored(&ops).keys.remove(0);
    let mut json: Value = serde_json::from_slice(&raw.value).unwrap();
    json["hold"] = serde_json::json!({ "until": [1, null] });
    let process = json.get_mut("process").and_then(Value::as_object_mut);
    process.into_iter().for_each(|process| drop(process.insert("cgroup".into(), "a".into())));
    raw.value = json.to_string().into();
    raw
}

#[test]
fn what_a_newer_agent_wrote_beside_it_outlives_a_write() {
    let participant = Participant {
        host_name: "h1".into(),
        process: process(),
        seats: Seats::default(),
        done: vec![],
        waits_for: None,
        waits_since: None,
        waits_until: None,
        does: None,
        backed_up: None,
        is_closed: false,
        unknown: Unknown::default(),
    };
    let baton = Baton {
        host: host(),
        process: process(),
        host_name: "h1".into(),
        take: TakeId(1),
        unknown: Unknown::default(),
    };
    for op in [
        Op::PutRun(run(RunState::Rolling)),
        Op::PutAgent(host(), participant),
        Op::PutBaton(baton),
        Op::PutStepLock(record()),
        Op::PutAbandoned(record()),
        Op::PutHost(host(), HostRecord::joining("h1".into()).holding(MemberId(1))),
    ] {
        let newer = by_a_newer_agent(&op);
        let keys = read([newer.clone()]).unwrap();
        let again = match op {
            Op::PutRun(_) => Op::PutRun(keys.run.unwrap().value.in_state(RunState::Approved)),
            Op::PutAgent(host, _) => Op::PutAgent(host, keys.agents[&host].value.clone()),
            Op::PutBaton(_) => Op::PutBaton(keys.baton.unwrap().value),
            Op::PutStepLock(_) => Op::PutStepLock(keys.step.unwrap().value),
            Op::PutAbandoned(_) => Op::PutAbandoned(keys.abandoned.into_values().next().unwrap().value),
            Op::PutHost(host, _) => Op::PutHost(host, keys.hosts[&host].value.clone()),
            Op::Delete(_) => unreachable!(),
        };
        let (_, ops) = txn(&Txn { compares: vec![], ops: vec![again] }, None);
        let mut expected: Value = serde_json::from_slice(&newer.value).unwrap();
        if newer.key == "run" {
            expected["state"] = "approved".into();
        }
        let written: Value = serde_json::from_slice(&stored(&ops).keys[0].value).unwrap();
        assert_eq!(written, expected, "{}", newer.key);
    }
}

#[test]
fn an_intent_that_is_not_all_read_is_not_agreed_on() {
    let with = |state: RunState, at: &[&str]| {
        let (_, ops) = txn(&Txn { compares: vec![], ops: vec![Op::PutRun(run(state))] }, None);
        let mut json: Value = serde_json::from_slice(&stored(&ops).keys[0].value).unwrap();
        let part = at.iter().fold(&mut json, |part, name| &mut part[*name]);
        part["more"] = 1.into();
        read([raw("run", &json.to_string(), None)])
    };
    for at in [&["intent"][..], &["intent", "change", "upgrade"]] {
        let newer = with(RunState::Rolling, at);
        assert!(matches!(newer, Err(StoredError::Newer { found: FORMAT, .. })), "{at:?}: {newer:?}");
        let done = RunState::Done { result: crate::keys::RunResult::Reached };
        assert!(with(done, at).is_ok(), "{at:?}: history");
    }
    assert!(with(RunState::Rolling, &[]).is_ok());
}

#[test]
fn an_agent_or_a_baton_without_a_lease_is_nobody() {
    let agent = format!("agents/{}", host());
    let leased = Some(LeaseId(7));
    let process = serde_json::to_string(&process()).unwrap();
    let participant = format!(r#"{{"format":1,"host_name":"h","process":{process},"seats":[]}}"#);
    let participant = participant.as_str();
    for (key, value, lease, stale) in [
        (agent.as_str(), participant, leased, None),
        (agent.as_str(), participant, None, Some(KeyName::Agent(host()))),
        (agent.as_str(), "no json", None, Some(KeyName::Agent(host()))),
        ("baton", r#"{"format":2}"#, None, Some(KeyName::Baton)),
        ("agents/nobody", participant, None, None),
    ] {
        let keys = read([raw(key, value, lease)]).unwrap();
        let found: Vec<_> = stale.iter().map(|key| Stale { key: *key, modified: Revision(7) }).collect();
        assert_eq!(keys.stale, found, "{key} {value}");
        assert_eq!(keys.agents.len(), usize::from(lease.is_some()), "{key} {value}");
        assert_eq!(keys.baton, None);
    }
    assert!(read([raw(&agent, "no json", leased)]).is_err());
}

#[test]
fn a_newer_format_is_named_and_other_keys_are_passed_over() {
    let read = |key: &str, value: &str| read([raw(key, value, None)]);
    let newer = read("step", r#"{"format":2,"host_name":"h9","what":"ever"}"#);
    assert!(matches!(newer, Err(StoredError::Newer { found: 2, host: Some(host), .. }) if &*host == "h9"));
    for value in ["", "{}", "[]", "\u{0}", r#"{"format":1}"#, r#"{"format":-1}"#] {
        assert!(matches!(read("run", value), Err(StoredError::Damaged { .. })), "{value}");
    }
    for key in ["other", "run/x", "agents/nobody", "hosts/h1", "abandoned/1", "abandoned/8E9E05C52164694D", ""] {
        assert_eq!(read(key, "no json").unwrap(), Keys::default(), "{key}");
    }
}

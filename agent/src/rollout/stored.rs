//! The shared keys as they are stored: names as text, values as JSON with a format, and Txns for the store.
//!
//! A value of a format that this release does not know is an error and is never written over: a newer agent
//! put it there. Fields that are not known are passed over; fields are added, never renamed. Keys of other
//! names under the prefix are none of ours.

use std::{fmt, sync::Arc};

use proto::{LeaseId, MemberId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    host_id::HostId,
    keys::{At, KeyName, Keys},
    store::{self, RawKey, Snapshot},
    txn::{Compare, Is, Op, Txn},
};

/// The format that this release writes, and the only one it reads.
pub const FORMAT: u64 = 1;

/// Why the keys cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// A newer agent wrote this key; it must not be touched.
    #[error("the key `{key}` has format {found}; this agent knows {FORMAT}")]
    Newer {
        /// The key, without the prefix.
        key: String,
        /// Its format.
        found: u64,
        /// The host whose agent wrote it, where the value says so.
        host: Option<Arc<str>>,
    },
    /// The value is none that any agent wrote.
    #[error("the key `{key}` does not hold what an agent writes")]
    Damaged {
        /// The key, without the prefix.
        key: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// What every value says, whatever its format.
#[derive(Deserialize)]
struct Head {
    format: u64,
    #[serde(default)]
    host_name: Option<Arc<str>>,
}

#[derive(Serialize)]
struct Stored<'a, T> {
    format: u64,
    #[serde(flatten)]
    value: &'a T,
}

/// Reads all keys of one moment.
///
/// # Errors
/// [`StoredError`] for the first key that cannot be understood: half of the keys decide nothing.
pub fn keys(snapshot: &Snapshot) -> Result<Keys, StoredError> {
    let mut keys = Keys::default();
    for raw in &snapshot.keys {
        match name(&raw.key) {
            Some(KeyName::Run) => keys.run = Some(value(raw)?),
            Some(KeyName::Baton) => keys.baton = Some(value(raw)?),
            Some(KeyName::Down) => keys.down = Some(value(raw)?),
            Some(KeyName::Agent(host)) => drop(keys.agents.insert(host, value(raw)?)),
            Some(KeyName::Lost(member)) => drop(keys.lost.insert(member, value(raw)?)),
            None => {}
        }
    }
    Ok(keys)
}

fn value<T: DeserializeOwned>(raw: &RawKey) -> Result<At<T>, StoredError> {
    let damaged = |source| StoredError::Damaged { key: raw.key.clone(), source };
    let head: Head = serde_json::from_slice(&raw.value).map_err(damaged)?;
    if head.format != FORMAT {
        return Err(StoredError::Newer { key: raw.key.clone(), found: head.format, host: head.host_name });
    }
    let value = serde_json::from_slice(&raw.value).map_err(damaged)?;
    Ok(At { created: raw.created, modified: raw.modified, value })
}

/// A Txn as the store sends it. Participants' keys are bound to the lease `agent`, a baton to the lease of
/// its own taking.
pub fn txn(txn: &Txn, agent: Option<LeaseId>) -> (Vec<store::Compare>, Vec<store::Op>) {
    (txn.compares.iter().map(compare).collect(), txn.ops.iter().map(|write| op(write, agent)).collect())
}

fn compare(Compare { key, is }: &Compare) -> store::Compare {
    match is {
        Is::Absent => store::Compare::Created(key.to_string(), proto::Revision(0)),
        Is::Created(at) => store::Compare::Created(key.to_string(), *at),
        Is::Modified(at) => store::Compare::Modified(key.to_string(), *at),
    }
}

fn op(write: &Op, agent: Option<LeaseId>) -> store::Op {
    match write {
        Op::PutRun(run) => put(KeyName::Run, run, None),
        Op::PutAgent(host, participant) => put(KeyName::Agent(*host), participant, agent),
        Op::PutBaton(baton) => put(KeyName::Baton, baton, Some(baton.take.lease())),
        Op::PutDown(record) => put(KeyName::Down, record, None),
        Op::PutLost(record) => put(KeyName::Lost(record.member), record, None),
        Op::Delete(key) => store::Op::Delete { key: key.to_string() },
    }
}

fn put<T: Serialize>(key: KeyName, value: &T, lease: Option<LeaseId>) -> store::Op {
    let value = serde_json::to_vec(&Stored { format: FORMAT, value })
        .expect("every value is a struct whose maps have texts for keys, which JSON can always hold");
    store::Op::Put { key: key.to_string(), value, lease }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => f.write_str("run"),
            Self::Agent(host) => write!(f, "agents/{host}"),
            Self::Baton => f.write_str("baton"),
            Self::Down => f.write_str("down"),
            Self::Lost(member) => write!(f, "lost/{}", member.key_form()),
        }
    }
}

fn name(text: &str) -> Option<KeyName> {
    match text.split_once('/') {
        None if text == "run" => Some(KeyName::Run),
        None if text == "baton" => Some(KeyName::Baton),
        None if text == "down" => Some(KeyName::Down),
        Some(("agents", host)) => host.parse::<HostId>().ok().map(KeyName::Agent),
        Some(("lost", member)) => {
            let id = member.parse::<MemberId>().ok()?;
            (id.key_form() == member).then_some(KeyName::Lost(id))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proto::{ClusterId, Release, Revision};

    use super::*;
    use crate::rollout::{
        keys::{AttemptId, Baton, Change, Finalize, Going, Intent, Participant, ProcessId, Run, RunId, RunState},
        keys::{TakeDown, TakeId},
        rules::Rules,
    };

    fn host() -> HostId {
        HostId { machine: Some(0xa), instance: 0xb }
    }

    fn process() -> ProcessId {
        ProcessId { boot_id: 7, pid: 8, start_time: 9 }
    }

    fn run(state: RunState) -> Run {
        let change = Change::Upgrade { from: ">=3.4, <3.5".parse().unwrap(), to: Release::new(3, 5, 30) };
        let gates = [("LeaseCheckpoint".to_owned(), true)].into();
        let intent = Intent { cluster: ClusterId(0xc), change, gates, finalize: Finalize::Manual };
        Run { id: RunId(1), intent: intent.into(), state, changes_minor: true, done: vec![MemberId(3)] }
    }

    fn record() -> TakeDown {
        let (member, attempt) = (MemberId(0x8e9e_05c5_2164_694d), AttemptId(u128::MAX));
        TakeDown { member, host: host(), host_name: "h1".into(), attempt, process: process(), back: true }
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
        let participant =
            Participant { host_name: "h1".into(), owns: vec![MemberId(1)], done: vec![], waits_for: Some("x".into()) };
        let baton = Baton { host: host(), process: process(), host_name: "h1".into(), take: TakeId(u128::MAX) };
        let ops = vec![
            Op::PutRun(run(failed.clone())),
            Op::PutAgent(host(), participant.clone()),
            Op::PutBaton(baton.clone()),
            Op::PutDown(record()),
            Op::PutLost(record()),
        ];
        let (_, ops) = txn(&Txn { compares: vec![], ops }, Some(LeaseId(77)));
        let read = keys(&stored(&ops)).unwrap();
        let at = |created| (created, Revision(5));
        let found = read.run.unwrap();
        assert_eq!((found.value, (found.created, found.modified)), (run(failed), at(Revision(4))));
        assert_eq!(read.agents[&host()].value, participant);
        assert_eq!(read.baton.unwrap().value, baton);
        assert_eq!(read.down.unwrap().value, record());
        assert_eq!(read.lost[&record().member].value, record());
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
                "down",
                None,
            ),
            (
                "lost/8e9e05c52164694d",
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
            store::Compare::Created("down".into(), Revision(0)),
        ];
        assert_eq!(compares, expected);
        assert_eq!(ops.len(), 1);
    }

    #[test]
    fn a_newer_format_is_named_and_other_keys_are_passed_over() {
        let raw = |key: &str, value: &str| RawKey {
            key: key.into(),
            value: value.into(),
            created: Revision(1),
            modified: Revision(1),
            lease: None,
        };
        let read = |key: &str, value: &str| keys(&Snapshot { revision: Revision(1), keys: vec![raw(key, value)] });
        let newer = read("down", r#"{"format":2,"host_name":"h9","what":"ever"}"#);
        assert!(matches!(newer, Err(StoredError::Newer { found: 2, host: Some(host), .. }) if &*host == "h9"));
        for value in ["", "{}", "[]", "\u{0}", r#"{"format":1}"#, r#"{"format":-1}"#] {
            assert!(matches!(read("run", value), Err(StoredError::Damaged { .. })), "{value}");
        }
        for key in ["other", "run/x", "agents/nobody", "lost/1", "lost/8E9E05C52164694D", ""] {
            assert_eq!(read(key, "no json").unwrap(), Keys::default(), "{key}");
        }
    }
}

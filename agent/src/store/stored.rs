//! The shared keys as they are stored: names as text, values as JSON with a format, and Txns for the store.
//!
//! A value of a format that this release does not know is an error and is never written over: a newer agent
//! put it there. Fields are added, never renamed; those that are not known are kept, and written back with the value. In
//! an intent they are an error: hosts that do not read all of it do not agree on it. Keys of other names are none of ours.

use std::{fmt, sync::Arc};

use proto::{LeaseId, MemberId};
use serde::Deserialize;
use serde_json::Value;

use super::{
    RawKey, Snapshot,
    reading::{MOST_BYTES, Oversize},
};
use crate::{
    keys::{
        At, Baton, KeyName, Keys, Participant, Run, Stale, StepLock,
        host_id::HostId,
        host_record::HostRecord,
        txn::{Compare, Is, Op, Txn},
    },
    store,
    unknown::{self, Keeps, keeps},
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
        /// Its format; this agent's own where the intent says more than this agent knows.
        found: u64,
        /// The host whose agent wrote it, where the value says so.
        host: Option<Arc<str>>,
    },
    /// More than any agent writes.
    #[error(transparent)]
    Oversize(#[from] Oversize),
    /// The value is none that any agent wrote.
    #[error("the key `{key}` does not hold what an agent writes")]
    Damaged {
        /// The key, without the prefix.
        key: String,
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

keeps! { Run, Participant, Baton, StepLock, HostRecord }

/// Reads all keys of one moment.
///
/// # Errors
/// [`StoredError`] for the first key that cannot be understood: half of the keys decide nothing.
pub fn keys(snapshot: &Snapshot) -> Result<Keys, StoredError> {
    let mut keys = Keys::default();
    for raw in &snapshot.keys {
        let name = name(&raw.key);
        if let (Some(key @ (KeyName::Baton | KeyName::Agent(_))), Some(lease)) = (name, raw.lease) {
            keys.leases.insert(key, lease);
        }
        match name {
            Some(key @ (KeyName::Baton | KeyName::Agent(_))) if raw.lease.is_none() => {
                keys.stale.push(Stale { key, modified: raw.modified });
            }
            Some(_) if raw.value.len() > MOST_BYTES => {
                return Err(Oversize::Value { key: raw.key.clone(), bytes: raw.value.len() }.into());
            }
            Some(KeyName::Run) => keys.run = Some(run(raw)?),
            Some(KeyName::Baton) => keys.baton = Some(value(raw)?),
            Some(KeyName::Step) => keys.step = Some(value(raw)?),
            Some(KeyName::Agent(host)) => drop(keys.agents.insert(host, value(raw)?)),
            Some(KeyName::Abandoned(member)) => drop(keys.abandoned.insert(member, value(raw)?)),
            Some(KeyName::Host(host)) => drop(keys.hosts.insert(host, value(raw)?)),
            None => {}
        }
    }
    Ok(keys)
}

/// The step lock; `None` where it is none of an agent's.
pub(super) fn record(raw: &RawKey) -> Option<StepLock> {
    Some(value::<StepLock>(raw).ok()?.value)
}

/// A run that is done is history, whatever else it was to do.
fn run(raw: &RawKey) -> Result<At<Run>, StoredError> {
    let run: At<Run> = value(raw)?;
    match run.value.unknown.is_at(&["intent"]) && !run.value.is_over() {
        true => Err(StoredError::Newer { key: raw.key.clone(), found: FORMAT, host: None }),
        false => Ok(run),
    }
}

fn value<T: Keeps>(raw: &RawKey) -> Result<At<T>, StoredError> {
    let damaged = |source| StoredError::Damaged { key: raw.key.clone(), source };
    let head: Head = serde_json::from_slice(&raw.value).map_err(damaged)?;
    if head.format != FORMAT {
        return Err(StoredError::Newer { key: raw.key.clone(), found: head.format, host: head.host_name });
    }
    let mut json: Value = serde_json::from_slice(&raw.value).map_err(damaged)?;
    json.as_object_mut().and_then(|fields| fields.remove("format"));
    let value = unknown::read::<T>(json).map_err(damaged)?;
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
        Op::PutStepLock(record) => put(KeyName::Step, record, None),
        Op::PutAbandoned(record) => put(KeyName::Abandoned(record.member), record, None),
        Op::PutHost(host, record) => put(KeyName::Host(*host), record, None),
        Op::Delete(key) => store::Op::Delete { key: key.to_string() },
    }
}

fn put(key: KeyName, value: &impl Keeps, lease: Option<LeaseId>) -> store::Op {
    let mut json = unknown::written(value)
        .expect("every value is a struct whose maps have texts for keys, which JSON can always hold");
    json["format"] = FORMAT.into();
    store::Op::Put { key: key.to_string(), value: json.to_string().into_bytes(), lease }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => f.write_str("run"),
            Self::Agent(host) => write!(f, "agents/{host}"),
            Self::Baton => f.write_str("baton"),
            Self::Step => f.write_str("step"),
            Self::Abandoned(member) => write!(f, "abandoned/{}", member.key_form()),
            Self::Host(host) => write!(f, "hosts/{host}"),
        }
    }
}

pub fn name(text: &str) -> Option<KeyName> {
    match text.split_once('/') {
        None if text == "run" => Some(KeyName::Run),
        None if text == "baton" => Some(KeyName::Baton),
        None if text == "step" => Some(KeyName::Step),
        Some(("agents", host)) => host.parse::<HostId>().ok().map(KeyName::Agent),
        Some(("hosts", host)) => host.parse::<HostId>().ok().map(KeyName::Host),
        Some(("abandoned", member)) => {
            let id = member.parse::<MemberId>().ok()?;
            (id.key_form() == member).then_some(KeyName::Abandoned(id))
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "stored_test.rs"]
mod tests;

//! What one key below `/baton/` is: whether it is alive, stands, is stale, damaged, too large, newer, or none of ours.
//!
//! Pure. Source: agent/PROTOCOL.md, "Keys".

use proto::LeaseId;

use super::{
    RawKey, Snapshot,
    listing::{One, Remaining},
    stored::{self, StoredError},
};
use crate::keys::{KeyName, ProcessId, Run};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// As it was listed, without its value.
    pub raw: RawKey,
    /// How many bytes it holds, where it was read.
    pub bytes: Option<usize>,
    /// Its lease, and what is left of that; `None` for one that has ended.
    pub lease: Option<(LeaseId, Option<Remaining>)>,
    /// Who wrote it, where it says so.
    pub by: Option<Writer>,
    pub is: Is,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    pub host_name: String,
    /// The agent's process, where the key names one.
    pub process: Option<ProcessId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Is {
    /// An agent's or the baton, under a lease.
    Leased(Box<crate::keys::Keys>),
    /// A run, a record or a sign, which need none.
    Current(Box<crate::keys::Keys>),
    History(Box<Run>),
    /// An agent's or the baton, without a lease: nobody's.
    Stale,
    Damaged(String),
    TooLarge,
    Newer,
    Foreign,
}

/// Whether this name is one of ours, and its value is to be read.
pub fn is_ours(raw: &RawKey) -> bool {
    stored::name(&raw.key).is_some()
}

/// What a key is. `one` is its value, where the name is ours.
pub fn judge(raw: &RawKey, one: Option<&One>) -> Is {
    let is_leased_kind = matches!(stored::name(&raw.key), Some(KeyName::Agent(_) | KeyName::Baton));
    match one {
        None => Is::Foreign,
        Some(_) if is_leased_kind && raw.lease.is_none() => Is::Stale,
        Some(One::Gone) => Is::Damaged("it is gone by now".into()),
        Some(One::Oversize(_)) => Is::TooLarge,
        Some(One::Whole(whole)) => {
            match stored::keys(&Snapshot { revision: whole.modified, keys: vec![whole.clone()] }) {
                Ok(keys) if is_leased_kind => Is::Leased(keys.into()),
                Ok(keys) => match keys.run {
                    Some(run) if run.value.is_over() => Is::History(run.value.into()),
                    run => Is::Current(crate::keys::Keys { run, ..keys }.into()),
                },
                Err(StoredError::Newer { .. }) => Is::Newer,
                Err(StoredError::Oversize(_)) => Is::TooLarge,
                Err(error @ StoredError::Damaged { .. }) => Is::Damaged(crate::words::with_causes(&error)),
            }
        }
    }
}

/// Who wrote a value, as far as it says so in the way that every format does.
pub fn writer(one: Option<&One>) -> Option<Writer> {
    let Some(One::Whole(raw)) = one else { return None };
    let json: serde_json::Value = serde_json::from_slice(&raw.value).ok()?;
    let process = json.get("process").and_then(|process| serde_json::from_value(process.clone()).ok());
    let host_name = json.get("host_name").and_then(|name| name.as_str())?.to_owned();
    Some(Writer { host_name, process })
}

#[cfg(test)]
mod tests {
    use proto::Revision;

    use super::*;

    #[test]
    fn a_key_is_judged_by_its_name_lease_and_value() {
        let agent = "agents/none-000000000000000000000000000000ab";
        let process = serde_json::to_string(&ProcessId::default()).unwrap();
        let participant = format!(r#"{{"format":1,"host_name":"h","process":{process},"seats":[]}}"#);
        let participant = participant.as_str();
        for (key, lease, value, expected) in [
            (agent, true, participant, "Leased"),
            (agent, false, participant, "Stale"),
            (agent, false, "x", "Stale"),
            (agent, true, "x", "Damaged"),
            ("baton", true, r#"{"format":9}"#, "Newer"),
            ("baton", false, r#"{"format":9}"#, "Stale"),
            ("step", false, "{}", "Damaged"),
            ("run", false, r#"{"format":2}"#, "Newer"),
            ("agents/x", false, participant, "Foreign"),
            ("notes", false, "", "Foreign"),
        ] {
            let (created, modified) = (Revision(1), Revision(2));
            let lease = lease.then_some(LeaseId(3));
            let raw = RawKey { key: key.into(), value: value.into(), created, modified, lease };
            let one = is_ours(&raw).then(|| One::Whole(raw.clone()));
            let found = format!("{:?}", judge(&raw, one.as_ref()));
            assert!(found.starts_with(expected), "{key} {value}: {found}");
        }
        let raw = RawKey { key: "run".into(), value: vec![], created: Revision(1), modified: Revision(1), lease: None };
        assert_eq!(judge(&raw, Some(&One::Oversize(7))), Is::TooLarge);
    }
}

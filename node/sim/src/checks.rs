//! What must hold all the time, and at the end.

use std::collections::BTreeMap;

use crc32c::crc32c_append;
use lab::history;
use node::{member::Member, state::Form};
use proto::etcdserverpb::AlarmType;

use crate::{clients::Seen, network::HostId};

/// More configurations of one key than this are a failure.
const BOUND: usize = 2_000_000;

/// The states that members were seen in.
#[derive(Default)]
pub struct States {
    /// By index: its state's checksum, and where it was seen first.
    known: BTreeMap<u64, (u32, HostId)>,
    pub compared: u64,
}

/// A member's position and its state's checksum.
pub fn look(member: &Member) -> (u64, u32) {
    member.read(|state| (state.applied.0, state.snapshot(Form::FIRST).fold(0, |sum, piece| crc32c_append(sum, &piece))))
}

/// Whether the leader has found a member that holds something else (N-2).
pub fn is_alarmed(member: &Member) -> bool {
    member.read(|state| state.alarms.iter().any(|(_, kind)| *kind == AlarmType::Corrupt as i32))
}

impl States {
    /// Takes in what a member holds (N-2).
    ///
    /// # Errors
    /// Another member held something else at the same index.
    pub fn see(&mut self, host: HostId, member: &Member) -> Result<(), String> {
        if is_alarmed(member) {
            return Err(format!("the alarm CORRUPT stands on member {host}"));
        }
        let (index, sum) = look(member);
        let (known, first) = *self.known.entry(index).or_insert((sum, host));
        if known != sum {
            return Err(format!("at index {index} the members {first} and {host} hold different states"));
        }
        self.compared += u64::from(first != host);
        while self.known.len() > 20_000 {
            self.known.pop_first();
        }
        Ok(())
    }
}

/// What clients saw, whole.
///
/// # Errors
/// What must not be.
pub fn judge(seen: &Seen) -> Result<(), String> {
    if let Some(fault) = seen.faults.first() {
        return Err(fault.clone());
    }
    history::check(&seen.history, BOUND).map_err(|error| error.to_string())?;
    let mut by_revision: BTreeMap<i64, (&str, u64)> = BTreeMap::new();
    for (revision, key, number) in &seen.acknowledged {
        if let Some(other) = by_revision.insert(*revision, (key, *number)) {
            return Err(format!(
                "two writes were acknowledged at revision {revision}: {key} = {number}, and {other:?}"
            ));
        }
    }
    let watched: BTreeMap<i64, (&str, u64)> =
        seen.watched.iter().map(|(revision, key, number)| (*revision, (&**key, *number))).collect();
    let is_gone = |revision: &i64| seen.gone.iter().any(|gone| gone.contains(revision));
    for (revision, what) in by_revision.iter().filter(|(revision, _)| !is_gone(revision)) {
        match watched.get(revision) {
            Some(told) if told == what => {}
            Some(told) => {
                return Err(format!(
                    "the watch tells of {told:?} at revision {revision}, where {what:?} was acknowledged"
                ));
            }
            None => return Err(format!("the watch does not tell of revision {revision}: {what:?}")),
        }
    }
    Ok(())
}

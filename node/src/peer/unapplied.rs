//! What the end of the log says of members' starts before it is known to be committed. A member notes a start before it publishes
//! it: so whoever has its word for it knows of that start, whatever becomes of the entry (N-7).
//!
//! Read once, when this member starts: killed, it may have heard of a start and not of its commit, and the others may all be gone.

use std::collections::BTreeMap;

use bytes::Bytes;
use proto::{ClusterVersion, LogIndex, MemberId};
use wal::{Wal, WalError};

use crate::{
    cluster::{
        entry::Entry as ClusterEntry,
        member::{Incarnation, Member, Start},
    },
    entry::{Entry, EntryKind},
    machine::Proposal,
    state::State,
};

/// The last word of each member there.
#[derive(Clone, Debug, Default)]
pub struct Unapplied {
    by_member: BTreeMap<MemberId, Published>,
}

/// What is known of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) incarnation: Option<Incarnation>,
    pub(super) start: Start,
}

#[derive(Clone, Copy, Debug)]
struct Published {
    index: LogIndex,
    known: Known,
}

impl Unapplied {
    /// Of this log, on a member that runs this minor.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn read(wal: &Wal, own: ClusterVersion) -> Result<Self, WalError> {
        let mut unapplied = Self::default();
        consensus::uncommitted(wal, |index, command| unapplied.note(LogIndex(index), command, own))?;
        Ok(unapplied)
    }

    /// What cannot be read stops this member if it is ever committed.
    fn note(&mut self, index: LogIndex, command: Bytes, own: ClusterVersion) {
        let entry = Proposal::decode(command).and_then(|proposal| Entry::decode(proposal.entry, own));
        if let Ok(EntryKind::Cluster(ClusterEntry::Publish { member, starts, start_id, incarnation, .. })) =
            entry.map(|entry| entry.what)
        {
            let known = Known { incarnation, start: Start { starts, id: start_id } };
            self.by_member.insert(member, Published { index, known });
        }
    }

    /// What this member knows of another: by the state, or by what is not in it yet. Behind that entry the state alone counts, as
    /// another one may have taken its place.
    pub(super) fn known(&self, state: &State, member: MemberId) -> Option<Known> {
        let known = |member: &Member| Known { incarnation: member.incarnation, start: member.start() };
        let applied = state.cluster.members.get(&member).map(known);
        let heard = self.by_member.get(&member).filter(|heard| state.applied < heard.index).map(|heard| heard.known);
        match (applied, heard) {
            (Some(applied), Some(heard)) if heard.start.starts <= applied.start.starts => Some(applied),
            (Some(applied), Some(heard)) if applied.incarnation.is_some_and(|own| heard.incarnation != Some(own)) => {
                Some(applied)
            }
            (applied, heard) => heard.or(applied),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{
        cluster::member::{Attributes, StartId, Starts},
        state::ProposalId,
    };

    const MEMBER: MemberId = MemberId(7);
    const OWN: ClusterVersion = ClusterVersion { major: 3, minor: 6 };

    fn known(starts: u64, id: u64, incarnation: u64) -> Known {
        let start = Start { starts: Starts(starts), id: StartId::read(id) };
        Known { incarnation: Incarnation::read(incarnation), start }
    }

    #[test]
    fn what_is_not_applied_counts_until_the_state_is_past_it() {
        let Known { incarnation, start } = known(2, 8, 5);
        let attributes = Attributes::default();
        let published =
            ClusterEntry::Publish { member: MEMBER, starts: start.starts, start_id: start.id, incarnation, attributes };
        let entry = Bytes::from(Entry::from(EntryKind::Cluster(published)).encode());
        let id = ProposalId { member: MEMBER, starts: Starts(2), number: 1 };
        let mut unapplied = Unapplied::default();
        unapplied.note(LogIndex(9), Bytes::from_static(b"rubbish"), OWN);
        unapplied.note(LogIndex(10), Proposal { id, settled: 1, entry }.encode().into(), OWN);
        for (applied, member, expected) in [
            (8, None, Some(known(2, 8, 5))),
            (10, None, None),
            (8, Some(known(1, 7, 5)), Some(known(2, 8, 5))),
            (10, Some(known(1, 7, 5)), Some(known(1, 7, 5))),
            (8, Some(known(0, 0, 0)), Some(known(2, 8, 5))),
            (8, Some(known(1, 7, 6)), Some(known(1, 7, 6))), // of another data directory
            (8, Some(known(2, 9, 5)), Some(known(2, 9, 5))),
        ] {
            let mut state = State { applied: LogIndex(applied), ..State::default() };
            if let Some(Known { incarnation, start }) = member {
                let (starts, start_id) = (start.starts, start.id);
                state.cluster.members.insert(MEMBER, Member { incarnation, starts, start_id, ..Member::default() });
            }
            assert_eq!(unapplied.known(&state, MEMBER), expected, "applied up to {applied}, {member:?}");
            assert_eq!(unapplied.known(&state, MemberId(8)), None);
        }
    }
}

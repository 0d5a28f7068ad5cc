//! Everything that members hold in common, and what one entry does to it.
//!
//! `apply(state, entry) -> (state, effects)`: the state is changed in place, the effects are the answer to whoever proposed
//! the entry, and what the leader and watchers can tell from the state itself. No clock, disk, network or chance, and
//! nothing of the member's own: two members that applied the same entries are equal, whichever releases they run.

mod sessions;
mod snapshot;

use std::collections::BTreeSet;

use proto::{
    ClusterVersion, LeaseId, LogIndex, MemberId,
    batonpb::AddResponse,
    etcdserverpb::{
        AlarmMember, AlarmRequest, AlarmResponse, CompactionResponse, DeleteRangeResponse, LeaseGrantResponse,
        LeaseRevokeResponse, PutResponse, alarm_request::AlarmAction,
    },
};

pub use sessions::{ProposalId, Sessions};
pub use snapshot::{Form, Restore, StateError};

use crate::{
    api_error::ApiError,
    cluster::{Cluster, downgrade::LOWEST, entry::Entry as ClusterEntry, membership::Membership},
    entry::{Entry, EntryKind},
    features::{LEASE_CHECKPOINT, Registry},
    mvcc::{Performed, Store},
};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The last entry that was applied.
    pub applied: LogIndex,
    pub keys: Store,
    pub cluster: Cluster,
    /// Which proposals were applied already.
    pub sessions: Sessions,
    /// The alarms that stand, by member, as etcd numbers their kinds.
    pub alarms: BTreeSet<(MemberId, i32)>,
}

/// What came of an entry, for whoever proposed it.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    Put(PutResponse),
    DeleteRange(DeleteRangeResponse),
    /// A transaction was performed; its reads are still to be made.
    Txn(Performed),
    Compact(CompactionResponse),
    LeaseGrant(LeaseGrantResponse),
    LeaseRevoke(LeaseRevokeResponse),
    /// What leases had left was written down, or not, as the feature is off.
    LeaseCheckpoint {
        written: bool,
    },
    CounterAdd(AddResponse),
    /// The alarms that stand now, of those that were asked about.
    Alarm(AlarmResponse),
    /// Something about the cluster, or nothing, as it came too late.
    Cluster {
        /// Whether anything changed.
        changed: bool,
    },
}

/// Why an entry did nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request itself is at fault.
    #[error(transparent)]
    Request(#[from] ApiError),
    /// It needs a feature that is off at its index.
    #[error("etcdserver: required feature {0} is not enabled")]
    FeatureOff(String),
    /// It is from a later release than the cluster's version at its index.
    #[error("etcdserver: the request needs cluster version {0}, and the cluster is below it")]
    AboveVersion(ClusterVersion),
}

impl State {
    /// Applies the entry at this index of the log.
    ///
    /// # Errors
    /// [`Refusal`]: nothing was changed but `applied`.
    pub fn apply(&mut self, index: LogIndex, entry: Entry, registry: &Registry) -> Result<Applied, Refusal> {
        self.applied = index;
        let is_off = |feature: &&str| !self.cluster.is_enabled(feature, registry);
        let mut requires = entry.requires.iter().map(String::as_str).chain(entry.what.feature());
        if let Some(feature) = requires.find(is_off) {
            return Err(Refusal::FeatureOff(feature.to_owned()));
        }
        self.may_apply(entry.since())?;
        Ok(match entry.what {
            EntryKind::Put(request) => Applied::Put(self.keys.put(request)?),
            EntryKind::DeleteRange(request) => Applied::DeleteRange(self.keys.delete_range(&request)),
            EntryKind::Txn(request) => Applied::Txn(self.keys.perform(request)?),
            EntryKind::Compact(request) => Applied::Compact(self.keys.compact(&request)?),
            EntryKind::LeaseGrant(request) => Applied::LeaseGrant(self.keys.lease_grant(&request)?),
            EntryKind::LeaseRevoke(request) => Applied::LeaseRevoke(self.keys.lease_revoke(&request)?),
            EntryKind::LeaseCheckpoint(request) => {
                let written = self.cluster.is_enabled(LEASE_CHECKPOINT, registry);
                if written {
                    self.keys.lease_checkpoint(&request);
                }
                Applied::LeaseCheckpoint { written }
            }
            EntryKind::CounterAdd(request) => Applied::CounterAdd(self.keys.counter_add(request)?),
            EntryKind::Alarm(request) => Applied::Alarm(self.alarm(&request)),
            EntryKind::Cluster(entry) => Applied::Cluster { changed: self.apply_cluster(index, entry, registry) },
        })
    }

    /// Whether what only releases from this minor on know is applied here. Proposed before the version was lowered, it can come after
    /// that; no member applies it then, as some could not (K-36).
    ///
    /// # Errors
    /// [`Refusal::AboveVersion`]
    pub fn may_apply(&self, since: ClusterVersion) -> Result<(), Refusal> {
        match since > LOWEST && self.cluster.version.is_none_or(|version| since > version) {
            true => Err(Refusal::AboveVersion(since)),
            false => Ok(()),
        }
    }

    fn apply_cluster(&mut self, index: LogIndex, entry: ClusterEntry, registry: &Registry) -> bool {
        self.change_cluster(registry, |cluster| cluster.apply(index, entry))
    }

    /// Applies an entry that says who the members are. Whether it has changed anything.
    pub fn follow(&mut self, index: LogIndex, to: &Membership, registry: &Registry) -> bool {
        self.change_cluster(registry, |cluster| cluster.follow(index, to))
    }

    fn change_cluster(&mut self, registry: &Registry, change: impl FnOnce(&mut Cluster) -> bool) -> bool {
        let was_on = self.cluster.is_enabled(LEASE_CHECKPOINT, registry);
        let changed = change(&mut self.cluster);
        if was_on && !self.cluster.is_enabled(LEASE_CHECKPOINT, registry) {
            // While it is off a renewal writes nothing down: what stands would count again, and be false, once it is on.
            self.keys.forget_lease_checkpoints();
        }
        changed
    }

    /// Makes it what it would be, had the cluster gone down to this version here: nothing is on, nothing is wanted yet, and what a
    /// feature has written that is off now is gone (KEP-4647, "Cluster Offline Downgrade").
    pub fn lower_to(&mut self, target: ClusterVersion) {
        self.cluster.lower_to(target);
        self.keys.forget_lease_checkpoints();
    }

    /// The seconds that a new leader gives a lease: what was written down, where that counts, or else all of them.
    pub fn lease_left_s(&self, lease: LeaseId, registry: &Registry) -> Option<i64> {
        let lease = self.keys.leases().get(lease)?;
        let counts = self.cluster.is_enabled(LEASE_CHECKPOINT, registry);
        Some(if counts { lease.remaining_s() } else { lease.granted_s() })
    }

    /// etcd's `Alarm`: to raise one that stands and to disarm one that does not are both no news.
    fn alarm(&mut self, request: &AlarmRequest) -> AlarmResponse {
        let of = |(member, kind): &(MemberId, i32)| AlarmMember { member_id: member.0, alarm: *kind };
        let asked = (MemberId(request.member_id), request.alarm);
        let alarms = match request.action() {
            AlarmAction::Get => {
                self.alarms.iter().filter(|(_, kind)| request.alarm == 0 || *kind == request.alarm).map(of).collect()
            }
            AlarmAction::Activate if request.alarm != 0 => {
                self.alarms.insert(asked);
                vec![of(&asked)]
            }
            AlarmAction::Deactivate => self.alarms.take(&asked).iter().map(of).collect(),
            AlarmAction::Activate => Vec::new(),
        };
        AlarmResponse { header: self.keys.header(), alarms }
    }
}

#[cfg(test)]
#[path = "state_test.rs"]
mod tests;

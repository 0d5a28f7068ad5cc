//! Leases: what every member knows of them, which is no clock.
//!
//! A lease is an id, the seconds it was granted for, the seconds it had left when its leader last wrote that down, and the
//! keys it holds. When it ends is the leader's to know; all that reaches this table is that it was granted, checkpointed or
//! revoked. Source: etcd, server/lease/lessor.go.

use std::time::Duration;

use bytes::Bytes;
use imbl::{OrdMap, OrdSet, ordmap::DiffItem};
use proto::LeaseId;

use crate::api_error::ApiError;

/// The longest a lease may be granted for, in seconds (etcd, `MaxLeaseTTL`).
pub const MAX_TTL_S: i64 = 9_000_000_000;

/// The least seconds that a member grants a lease for, so that none ends while a leader is being elected. It depends on the
/// member's own flags, so whoever proposes a grant raises its seconds to this; applying it never does (etcd, `MinLeaseTTL` in
/// server/etcdserver/server.go, one and a half election time-outs).
pub fn least_ttl_s(election_timeout: Duration) -> i64 {
    let least_ns = (election_timeout.as_nanos() * 3).div_ceil(2);
    i64::try_from(least_ns.div_ceil(1_000_000_000)).unwrap_or(MAX_TTL_S)
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lease {
    granted_s: i64,
    checkpointed_s: i64,
    keys: OrdSet<Bytes>,
    /// Which grant made it. A client may revoke a lease and have its id granted again at once: that is another lease.
    grant: u64,
}

impl Lease {
    /// The seconds it was granted for.
    pub fn granted_s(&self) -> i64 {
        self.granted_s
    }

    /// The seconds that a new leader gives it: what was left at the last checkpoint, or else all.
    pub fn remaining_s(&self) -> i64 {
        if self.checkpointed_s > 0 { self.checkpointed_s } else { self.granted_s }
    }

    /// What the last checkpoint said; 0 for none.
    pub fn checkpointed_s(&self) -> i64 {
        self.checkpointed_s
    }

    /// Whether one of them was revoked before the other was granted, under the same id.
    pub(crate) fn is_of_another_grant(&self, other: &Self) -> bool {
        self.grant != other.grant
    }

    /// Its number among those that this process has seen granted.
    pub(crate) fn grant(&self) -> u64 {
        self.grant
    }

    /// How many keys go when it ends.
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// The keys that go when it ends, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Bytes> {
        self.keys.iter()
    }
}

#[derive(Debug, Clone, Default)]
pub struct Leases {
    by_id: OrdMap<LeaseId, Lease>,
    /// How many this process has seen granted. No state: one that has read a snapshot counts anew.
    grants: u64,
}

impl PartialEq for Leases {
    fn eq(&self, other: &Self) -> bool {
        let said = |leases: &Self| -> Vec<_> {
            leases.iter().map(|(id, lease)| (id, Lease { grant: 0, ..lease.clone() })).collect()
        };
        said(self) == said(other)
    }
}

impl Eq for Leases {}

impl Leases {
    pub fn get(&self, id: LeaseId) -> Option<&Lease> {
        self.by_id.get(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (LeaseId, &Lease)> {
        self.by_id.iter().map(|(id, lease)| (*id, lease))
    }

    /// The leases that are new since a copy was taken, and those that are gone: in a time that goes by their number. One whose
    /// id was granted again is first gone and then new.
    pub fn changes_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = (LeaseId, Option<&'a Lease>)> {
        before.by_id.diff(&self.by_id).flat_map(|change| {
            let (gone, new) = match change {
                DiffItem::Add(id, lease) => (None, Some((*id, Some(lease)))),
                DiffItem::Remove(id, _) => (Some((*id, None)), None),
                DiffItem::Update { old: (id, old), new: (_, new) } if old.is_of_another_grant(new) => {
                    (Some((*id, None)), Some((*id, Some(new))))
                }
                DiffItem::Update { .. } => (None, None),
            };
            gone.into_iter().chain(new)
        })
    }

    /// That a key may be bound to this lease; id 0 binds it to none.
    pub(crate) fn require(&self, id: LeaseId) -> Result<(), ApiError> {
        if id == LeaseId(0) || self.by_id.contains_key(&id) { Ok(()) } else { Err(ApiError::LeaseNotFound) }
    }

    /// Adds a lease. The proposer has chosen the id, and raised the seconds to the least that it grants.
    pub(crate) fn grant(&mut self, id: LeaseId, granted_s: i64) -> Result<(), ApiError> {
        if id == LeaseId(0) {
            return Err(ApiError::LeaseNotFound);
        }
        if granted_s > MAX_TTL_S {
            return Err(ApiError::LeaseTtlTooLarge);
        }
        if self.by_id.contains_key(&id) {
            return Err(ApiError::LeaseExists);
        }
        self.grants += 1;
        self.by_id.insert(id, Lease { granted_s, grant: self.grants, ..Lease::default() });
        Ok(())
    }

    /// Writes down what a lease had left; of one that has ended meanwhile nothing is written.
    pub(crate) fn checkpoint(&mut self, id: LeaseId, remaining_s: i64) {
        if let Some(lease) = self.by_id.get_mut(&id) {
            lease.checkpointed_s = remaining_s;
        }
    }

    pub(crate) fn forget_checkpoints(&mut self) {
        let written = |(id, lease): (&LeaseId, &Lease)| (lease.checkpointed_s != 0).then_some(*id);
        for id in self.by_id.iter().filter_map(written).collect::<Vec<_>>() {
            self.checkpoint(id, 0);
        }
    }

    /// Takes a lease out, with the keys that it still holds.
    pub(crate) fn remove(&mut self, id: LeaseId) -> Option<Lease> {
        self.by_id.remove(&id)
    }

    /// Hands a key from one lease to another; id 0 is none.
    pub(crate) fn pass(&mut self, key: &Bytes, from: LeaseId, to: LeaseId) {
        if from == to {
            return;
        }
        if let Some(lease) = self.by_id.get_mut(&from) {
            lease.keys.remove(key);
        }
        if let Some(lease) = self.by_id.get_mut(&to) {
            lease.keys.insert(key.clone());
        }
    }
}

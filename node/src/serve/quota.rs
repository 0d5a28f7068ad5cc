//! How large the state may grow, judged by the member that a client reached (etcd, server/storage/quota.go).
//!
//! Applying an entry never asks for room: members have quotas of their own, and must come to the same state.

use std::{sync::atomic::Ordering, time::Duration};

use proto::{
    MemberId,
    batonpb::AddRequest,
    etcdserverpb::{
        AlarmRequest, AlarmType, PutRequest, RequestOp, TxnRequest, alarm_request::AlarmAction, request_op,
    },
};
use tokio::time::sleep;
use tonic::Status;

use super::context::ServiceContext;
use crate::{api_error::ApiError, entry::EntryKind, state::State};

/// What etcd takes a key for, beside its bytes.
const KEY_BYTES: u64 = 256;
/// What etcd takes a lease for.
const LEASE_BYTES: u64 = 64;

/// How often a member looks whether it has become full.
const ROOM_INTERVAL: Duration = Duration::from_millis(500);

/// How many bytes a request may add, about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost(u64);

impl Cost {
    /// A request that adds nothing.
    pub(super) const NONE: Self = Self(0);
    pub(super) const LEASE: Self = Self(LEASE_BYTES);
}

pub(super) fn put(request: &PutRequest) -> Cost {
    Cost(KEY_BYTES + (request.key.len() + request.value.len()) as u64)
}

pub(super) fn counter(request: &AddRequest) -> Cost {
    Cost(KEY_BYTES + request.key.len() as u64)
}

/// What the dearer branch of a transaction costs.
pub(super) fn txn(request: &TxnRequest) -> Cost {
    let sum = |operations: &[RequestOp]| operations.iter().map(|one| operation(one).0).sum();
    Cost(std::cmp::max(sum(&request.success), sum(&request.failure)))
}

fn operation(operation: &RequestOp) -> Cost {
    match &operation.request {
        Some(request_op::Request::RequestPut(request)) => put(request),
        Some(request_op::Request::RequestTxn(request)) => txn(request),
        _ => Cost::NONE,
    }
}

/// How full this member is, and which alarms stand.
struct Room {
    is_full: bool,
    is_alarmed: bool,
    has_own_alarm: bool,
    is_corrupt: bool,
}

impl ServiceContext {
    /// That there is room for a write; where there is none, the alarm is raised, for all members to know.
    pub(super) async fn check_room(&self, cost: Cost) -> Result<(), Status> {
        let room = self.member.read(|state| self.room(state, cost));
        if room.is_full && !room.has_own_alarm {
            self.raise_no_space().await;
        }
        match room {
            Room { is_full: true, .. } => Err(ApiError::NoSpace.into()),
            Room { is_corrupt: true, .. } => Err(ApiError::Corrupt.into()),
            Room { is_alarmed: true, .. } if cost != Cost::NONE => Err(ApiError::NoSpace.into()),
            _ => Ok(()),
        }
    }

    fn room(&self, state: &State, cost: Cost) -> Room {
        let of_kind = |wanted: AlarmType| state.alarms.iter().any(|(_, kind)| *kind == wanted as i32);
        let own = (self.member.identity().member, AlarmType::Nospace as i32);
        Room {
            is_full: cost != Cost::NONE && state.keys.size_bytes() + cost.0 >= self.options.quota_bytes(),
            is_alarmed: of_kind(AlarmType::Nospace),
            has_own_alarm: state.alarms.contains(&own),
            is_corrupt: of_kind(AlarmType::Corrupt),
        }
    }

    /// Raises the alarm when entries that other members have taken fill this one: its quota may be smaller than theirs (etcd,
    /// `quotaApplierV3`). Where the alarm is disarmed and nothing has become less, the next write at this member raises it, or
    /// the next entry that makes the state larger.
    pub(super) async fn watch_room(self) {
        // A member that catches up may be full before it serves.
        let mut before = 0;
        loop {
            let now = self.member.read(|state| state.keys.size_bytes());
            // Until the alarm stands it is tried again: there may be no leader, or no quorum.
            if !overflows(before, now, self.options.quota_bytes()) || self.raise_no_space().await {
                before = now;
            }
            sleep(ROOM_INTERVAL).await;
        }
    }

    /// Whether the alarm stands now. One at a time is enough: it is this member's, whichever request was the first to find no room.
    async fn raise_no_space(&self) -> bool {
        if self.raises_alarm.swap(true, Ordering::AcqRel) {
            return false;
        }
        // A client that gives up drops this future anywhere.
        let _lowered = Lowered(&self.raises_alarm);
        // Another request may have raised it meanwhile.
        if self.member.read(|state| self.room(state, Cost::NONE).has_own_alarm) {
            return true;
        }
        let MemberId(member_id) = self.member.identity().member;
        let (action, alarm) = (AlarmAction::Activate.into(), AlarmType::Nospace.into());
        let raised = self.member.propose(EntryKind::Alarm(AlarmRequest { action, member_id, alarm }).into()).await;
        if let Err(error) = &raised {
            tracing::warn!(%error, "the alarm NOSPACE was not raised");
        }
        raised.is_ok()
    }
}

/// Whether a state has grown beyond what it may have since it was last looked at.
fn overflows(before: u64, now: u64, quota: u64) -> bool {
    now >= quota && now > before
}

struct Lowered<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Lowered<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_overflows_when_it_grows_and_is_larger_than_it_may_be() {
        for (before, now, expected) in [
            (0, 99, false),
            (99, 100, true),
            (0, 150, true),    // full when it is looked at first
            (150, 150, false), // nothing came since
            (150, 151, true),  // something did
            (150, 120, false), // it became less, which is no reason
            (120, 99, false),
        ] {
            assert_eq!(overflows(before, now, 100), expected, "{before}, then {now}");
        }
    }
}

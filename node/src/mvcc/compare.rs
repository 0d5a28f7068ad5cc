//! The conditions of a transaction.
//!
//! Source: etcd, `applyCompare` and `compareKV` in server/etcdserver/txn/txn.go. A condition whose value is of another kind
//! than its target is compared with 0 or nothing, and an unknown way to compare holds: clients send neither.

use std::cmp::Ordering;

use proto::{
    LeaseId, Revision,
    etcdserverpb::{
        Compare,
        compare::{CompareResult, CompareTarget, TargetUnion},
    },
};

use super::{
    KeyRange, Store,
    history::{Live, Position},
};

impl Store {
    /// The first condition that does not hold now.
    pub(super) fn first_that_fails(&self, conditions: &[Compare]) -> Option<usize> {
        conditions.iter().position(|condition| !self.holds(condition))
    }

    /// Whether all conditions hold now.
    pub(super) fn all_hold(&self, conditions: &[Compare]) -> bool {
        self.first_that_fails(conditions).is_none()
    }

    /// Whether a condition holds for every key of its range. Where there is none, revisions, version and lease are 0, and no
    /// condition on a value holds.
    fn holds(&self, condition: &Compare) -> bool {
        let mut alive = self.alive(KeyRange::new(&condition.key, &condition.range_end), self.revision).peekable();
        if alive.peek().is_none() {
            return condition.target != CompareTarget::Value as i32 && accepts(condition, absent(condition));
        }
        alive.all(|found| accepts(condition, present(condition, found.at, found.live)))
    }
}

fn accepts(condition: &Compare, ordering: Ordering) -> bool {
    match CompareResult::try_from(condition.result) {
        Ok(CompareResult::Equal) => ordering.is_eq(),
        Ok(CompareResult::NotEqual) => ordering.is_ne(),
        Ok(CompareResult::Greater) => ordering.is_gt(),
        Ok(CompareResult::Less) => ordering.is_lt(),
        Err(_) => true,
    }
}

fn present(condition: &Compare, at: Position, live: &Live) -> Ordering {
    match CompareTarget::try_from(condition.target) {
        Ok(CompareTarget::Version) => live.version.cmp(&number(condition)),
        Ok(CompareTarget::Create) => live.created.cmp(&Revision(number(condition))),
        Ok(CompareTarget::Mod) => at.revision.cmp(&Revision(number(condition))),
        Ok(CompareTarget::Lease) => live.lease.cmp(&LeaseId(number(condition))),
        Ok(CompareTarget::Value) => live.value.as_ref().cmp(value(condition)),
        Err(_) => Ordering::Equal,
    }
}

fn absent(condition: &Compare) -> Ordering {
    match CompareTarget::try_from(condition.target) {
        Ok(_) => 0.cmp(&number(condition)),
        Err(_) => Ordering::Equal,
    }
}

fn number(condition: &Compare) -> i64 {
    match (CompareTarget::try_from(condition.target), &condition.target_union) {
        (Ok(CompareTarget::Version), Some(TargetUnion::Version(number)))
        | (Ok(CompareTarget::Create), Some(TargetUnion::CreateRevision(number)))
        | (Ok(CompareTarget::Mod), Some(TargetUnion::ModRevision(number)))
        | (Ok(CompareTarget::Lease), Some(TargetUnion::Lease(number))) => *number,
        _ => 0,
    }
}

fn value(condition: &Compare) -> &[u8] {
    match &condition.target_union {
        Some(TargetUnion::Value(value)) => value,
        _ => &[],
    }
}

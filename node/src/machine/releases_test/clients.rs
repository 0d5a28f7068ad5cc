//! What clients write, and what it needs.

use proto::{
    batonpb::AddRequest,
    etcdserverpb::{
        CompactionRequest, Compare, DeleteRangeRequest, LeaseCheckpoint, LeaseCheckpointRequest, LeaseGrantRequest,
        LeaseRevokeRequest, PutRequest, RequestOp, TxnRequest,
        compare::{CompareResult, CompareTarget, TargetUnion},
        request_op::Request,
    },
};

use super::*;

/// Long enough to be compressed, now and then.
const LONG: usize = 1_500;

impl Chance {
    fn key(&mut self) -> Vec<u8> {
        format!("k{}", self.below(3)).into_bytes()
    }

    fn lease(&mut self) -> i64 {
        1 + self.below(2) as i64
    }

    fn put(&mut self) -> PutRequest {
        let value = vec![b'v'; if self.one_in(6) { LONG } else { 1 }];
        let lease = if self.one_in(3) { self.lease() } else { 0 };
        PutRequest { key: self.key(), value, lease, ..PutRequest::default() }
    }

    fn delete(&mut self) -> DeleteRangeRequest {
        DeleteRangeRequest { key: self.key(), range_end: b"l".to_vec(), ..DeleteRangeRequest::default() }
    }

    /// Whether a key is there; then, or else, a few changes.
    fn txn(&mut self, depth: usize) -> TxnRequest {
        let compare = Compare {
            result: CompareResult::Equal.into(),
            target: CompareTarget::Version.into(),
            key: self.key(),
            target_union: Some(TargetUnion::Version(self.below(2) as i64)),
            ..Compare::default()
        };
        let mut change = || {
            let request = match self.below(4) {
                0 => Request::RequestDeleteRange(self.delete()),
                1 if depth > 0 => Request::RequestTxn(self.txn(depth - 1)),
                _ => Request::RequestPut(self.put()),
            };
            vec![RequestOp { request: Some(request) }]
        };
        TxnRequest { compare: vec![compare], success: change(), failure: change() }
    }

    /// A write; many need features by what they are, some because they say so.
    pub(super) fn write(&mut self, revision: i64) -> Entry {
        let what = match self.below(12) {
            0..3 => EntryKind::CounterAdd(AddRequest { key: b"n".to_vec(), by: 3 }),
            3 => EntryKind::LeaseGrant(LeaseGrantRequest { id: self.lease(), ttl: 60 }),
            4 if self.one_in(2) => EntryKind::LeaseRevoke(LeaseRevokeRequest { id: self.lease() }),
            5..7 => {
                let checkpoint = LeaseCheckpoint { id: self.lease(), remaining_ttl: 1 + self.below(50) as i64 };
                EntryKind::LeaseCheckpoint(LeaseCheckpointRequest { checkpoints: vec![checkpoint] })
            }
            7..9 => EntryKind::Txn(self.txn(1)),
            9 => EntryKind::DeleteRange(self.delete()),
            10 => EntryKind::Compact(CompactionRequest { revision: revision - 2, physical: false }),
            _ => EntryKind::Put(self.put()),
        };
        let mut requires = Vec::new();
        while self.one_in(3) {
            requires.push(NAMES[self.below(NAMES.len())].to_owned());
        }
        Entry { requires, what }
    }
}

/// Whether it must be refused in this state: what it needs is off there, or comes with a later version.
pub(super) fn must_be_refused(cluster: &Cluster, entry: &Entry) -> bool {
    let mut needs = entry.requires.iter().map(String::as_str).chain(entry.what.feature());
    let is_later = |since| since > LOWEST && cluster.version.is_none_or(|version| version < since);
    needs.any(|name| !must_be_on(cluster, name)) || is_later(entry.since())
}

/// Whether something must come of it, once it is taken.
pub(super) fn must_write(entry: &Entry) -> bool {
    matches!(&entry.what, EntryKind::CounterAdd(_)) || matches!(&entry.what, EntryKind::Put(put) if put.lease == 0)
}

/// What is locked answers so, whatever else there is; what is not answers what was decided.
pub(super) fn must_be_on(cluster: &Cluster, name: &str) -> bool {
    let locked = cluster.version.and_then(|version| newest().locked(name, version));
    locked.unwrap_or(matches!(&cluster.gate, Gate::Decided(features) if features.get(name) == Some(true)))
}

pub(super) fn newest() -> Registry {
    Registry::of(&newest_release())
}

pub(super) fn newest_release() -> Release {
    "3.9.0".parse().unwrap()
}

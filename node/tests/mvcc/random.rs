//! Random requests from a seed: the same seed gives the same ones.

use proto::etcdserverpb::{
    CompactionRequest, Compare, DeleteRangeRequest, LeaseGrantRequest, LeaseRevokeRequest, PutRequest, RangeRequest,
    RequestOp, TxnRequest, compare::TargetUnion,
};

use crate::word::Operation;

/// No more than etcd sorts without changing the order of equals (Go's `sort.Sort` is stable up to twelve).
const KEYS: [&str; 10] = ["a", "b", "ba", "bb", "c", "d", "e", "ea", "\u{0}", "z"];
const ENDS: [&str; 6] = ["b", "bb", "c", "e", "f", "\u{0}"];
pub const LEASES: [i64; 3] = [7, 8, 9];

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to and without `end`.
    pub fn below(&mut self, end: i64) -> i64 {
        (self.next() % end.max(1) as u64) as i64
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: i64) -> bool {
        self.below(times) == 0
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as i64) as usize]
    }
}

/// One request.
#[derive(Debug, Clone)]
pub enum Step {
    Put(PutRequest),
    Delete(DeleteRangeRequest),
    Range(RangeRequest),
    Txn(TxnRequest),
    Compact(CompactionRequest),
    Grant(LeaseGrantRequest),
    Revoke(LeaseRevokeRequest),
}

/// What requests are made from.
pub struct Steps {
    pub random: Random,
    /// Whether transactions may delete without end, beside puts that such a deletion is not seen to overlap: etcd's member
    /// ends itself over some of these, so a real one must not be given any.
    pub open_deletions: bool,
}

impl Steps {
    /// The next request to a store whose newest revision is `newest`. Some are wrong.
    pub fn next(&mut self, newest: i64) -> Step {
        match self.random.below(40) {
            0..12 => Step::Put(self.put()),
            12..17 => Step::Delete(self.delete(true)),
            17..24 => Step::Range(self.range(newest)),
            24..36 => Step::Txn(self.txn(newest, 2)),
            36 => Step::Compact(CompactionRequest { revision: self.compaction(newest), physical: true }),
            37 => Step::Revoke(LeaseRevokeRequest { id: self.random.of(&LEASES) }),
            _ => Step::Grant(LeaseGrantRequest { id: self.random.of(&LEASES), ttl: 5000 }),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        if self.random.once_in(200) { Vec::new() } else { self.random.of(&KEYS).into() }
    }

    fn end(&mut self, open: bool) -> Vec<u8> {
        if self.random.once_in(2) {
            return Vec::new();
        }
        self.random.of(if open { &ENDS } else { &ENDS[..5] }).into()
    }

    fn revision(&mut self, newest: i64) -> i64 {
        match self.random.below(30) {
            0 => -1,
            1 => newest + 1,
            2..20 => 0,
            _ => newest - self.random.below(20).min(newest),
        }
    }

    /// Mostly behind the newest, so that there is history. Never 0: etcd takes that once, and from then on answers every
    /// question for the hash at revision 0, which is the newest, with the hash it had then.
    fn compaction(&mut self, newest: i64) -> i64 {
        (newest - self.random.below(12)).max(1) + i64::from(self.random.once_in(20))
    }

    fn put(&mut self) -> PutRequest {
        let (ignore_value, ignore_lease) = (self.random.once_in(12), self.random.once_in(12));
        let random = &mut self.random;
        let value = if ignore_value && !random.once_in(10) { String::new() } else { random.below(5).to_string() };
        let lease = if ignore_lease && !random.once_in(10) { 0 } else { random.of(&[0, 0, 0, 0, 7, 8, 9]) };
        let prev_kv = random.once_in(3);
        PutRequest { key: self.key(), value: value.into(), lease, prev_kv, ignore_value, ignore_lease }
    }

    fn delete(&mut self, open: bool) -> DeleteRangeRequest {
        DeleteRangeRequest { key: self.key(), range_end: self.end(open), prev_kv: self.random.once_in(2) }
    }

    pub fn range(&mut self, newest: i64) -> RangeRequest {
        let mut range = RangeRequest { key: self.key(), range_end: self.end(true), ..RangeRequest::default() };
        range.revision = self.revision(newest);
        let random = &mut self.random;
        range.limit = random.of(&[0, 0, 1, 2, 3, -1]);
        range.sort_order = random.of(&[0, 0, 1, 2]);
        range.sort_target = random.of(&[0, 0, 1, 2, 3, 4]);
        if random.once_in(60) {
            range.sort_target = 5;
        }
        range.keys_only = random.once_in(6);
        range.count_only = random.once_in(6);
        range.serializable = random.once_in(2);
        let filters = [
            &mut range.min_mod_revision,
            &mut range.max_mod_revision,
            &mut range.min_create_revision,
            &mut range.max_create_revision,
        ];
        for filter in filters {
            if random.once_in(8) {
                *filter = random.below(newest + 1);
            }
        }
        range
    }

    fn txn(&mut self, newest: i64, depth: i64) -> TxnRequest {
        let compare = (0..self.random.of(&[0, 0, 1, 2])).map(|_| self.compare(newest)).collect();
        let mut list = || (0..self.random.below(5)).map(|_| self.operation(newest, depth)).collect();
        TxnRequest { compare, success: list(), failure: list() }
    }

    fn operation(&mut self, newest: i64, depth: i64) -> RequestOp {
        match self.random.below(16) {
            0..6 => self.put().op(),
            6..8 => self.delete(self.open_deletions).op(),
            8..12 => self.range(newest).op(),
            12 if self.random.once_in(10) => RequestOp::default(),
            _ if depth > 0 => self.txn(newest, depth - 1).op(),
            _ => self.put().op(),
        }
    }

    fn compare(&mut self, newest: i64) -> Compare {
        let (key, range_end) = (self.key(), self.end(true));
        let random = &mut self.random;
        let target = random.below(5);
        let kind = if random.once_in(15) { random.below(5) } else { target };
        let target_union = match kind {
            0 => TargetUnion::Version(random.below(3)),
            1 => TargetUnion::CreateRevision((newest - random.below(20)).max(0)),
            2 => TargetUnion::ModRevision((newest - random.below(10)).max(0)),
            3 => TargetUnion::Value(random.below(5).to_string().into()),
            _ => TargetUnion::Lease(random.of(&[0, 7, 8])),
        };
        Compare {
            key,
            range_end,
            target: target as i32,
            result: random.below(4) as i32,
            target_union: Some(target_union).filter(|_| !random.once_in(20)),
        }
    }
}

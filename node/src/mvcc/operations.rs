//! What is counted of reads and writes, as etcd counts it (`metricsTxnWrite` in server/storage/mvcc/metrics_txn.go): a call of the
//! store is one, however many keys it is for.

use proto::etcdserverpb::{DeleteRangeRequest, PutRequest};

/// Of one transaction, or of one operation by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    pub ranges: u64,
    pub puts: u64,
    pub deletes: u64,
    /// Bytes of the keys and values that were put.
    pub put_bytes: u64,
}

impl Operations {
    /// One that has to see what was there before reads it, too.
    pub fn note_put(&mut self, put: &PutRequest) {
        self.puts += 1;
        self.put_bytes += (put.key.len() + put.value.len()) as u64;
        self.ranges += u64::from(put.prev_kv || put.ignore_value || put.ignore_lease);
    }

    /// So does a deletion.
    pub fn note_delete(&mut self, delete: &DeleteRangeRequest) {
        self.deletes += 1;
        self.ranges += u64::from(delete.prev_kv);
    }

    /// What etcd counts as a transaction: whatever does more than one thing.
    pub fn is_txn(&self) -> bool {
        self.ranges + self.puts + self.deletes > 1
    }

    pub(crate) fn add(&mut self, other: Self) {
        let Self { ranges, puts, deletes, put_bytes } = other;
        self.ranges += ranges;
        self.puts += puts;
        self.deletes += deletes;
        self.put_bytes += put_bytes;
    }
}

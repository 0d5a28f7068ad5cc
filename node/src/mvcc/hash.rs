//! One number for all that the keys hold and held.
//!
//! It is etcd's own (`kvHasher` in server/storage/mvcc/hash.go): CRC-32C over the name of etcd's bucket and then, for each
//! change in order, its place and the key-value as protobuf. Only what the changes say goes in, never how it is stored, so
//! members agree whatever their history of snapshots, and so does an etcd that was given the same requests.

use std::{collections::BTreeMap, iter};

use crc32c::{crc32c, crc32c_append};
use prost::Message;
use proto::{Revision, etcdserverpb::HashKvResponse, mvccpb::KeyValue};

use super::{
    Compaction, Store, header,
    history::{History, Record},
};
use crate::api_error::ApiError;

/// The name of the bucket that etcd keeps its keys in.
const BUCKET: &[u8] = b"key";

/// As many compactions are remembered (etcd, `hashStorageMaxSize`).
const MOST_KEPT: usize = 10;

/// The hashes of the last compactions: what each left out can be hashed no more, and members compare what they had (etcd,
/// `hashStorage`).
#[derive(Debug, Default)]
pub struct CompactionHashes {
    /// By revision.
    kept: BTreeMap<i64, HashKvResponse>,
}

impl CompactionHashes {
    pub fn add(&mut self, hash: HashKvResponse) {
        self.kept.insert(hash.hash_revision, hash);
        while self.kept.len() > MOST_KEPT {
            self.kept.pop_first();
        }
    }

    /// That of the compaction at this revision; its header is still to be made.
    pub fn at(&self, revision: i64) -> Option<HashKvResponse> {
        self.kept.get(&revision).copied()
    }
}

impl Store {
    /// Hashes what is there up to `revision`; 0 is the newest.
    ///
    /// # Errors
    /// The revision is compacted or not reached yet.
    pub fn hash_kv(&self, revision: i64) -> Result<HashKvResponse, ApiError> {
        let revision = match Revision(revision) {
            Revision(0) => self.revision,
            revision if revision > Revision(0) => self.readable(revision.0, self.revision)?,
            negative => negative,
        };
        Ok(HashKvResponse {
            header: header(self.revision),
            hash: self.hash_up_to(
                revision,
                self.compacted,
                self.keys.values().any(|history| is_kept_by_etcd(history, revision)),
            ),
            compact_revision: self.compacted.0,
            hash_revision: revision.0,
        })
    }

    /// What [`Store::hash_kv`] of this compaction's revision was until then, of the store that it has left, before anything was
    /// forgotten.
    ///
    /// But for one case, as in etcd (`Compact` and `Keep` of server/storage/mvcc/index.go): where all that it leaves are deletions at
    /// its very revision.
    pub fn hash_compaction(&self, Compaction { before, at }: Compaction) -> HashKvResponse {
        let leaves = |history: &History| history.kept(at).first().is_some_and(|record| record.at.revision <= at);
        let hash = self.hash_up_to(at, before, self.keys.values().any(leaves));
        HashKvResponse { header: None, hash, compact_revision: before.0, hash_revision: at.0 }
    }

    /// The hash at `revision`, where the last compaction was `compacted`. Where `any` is false, nothing is left of what was there at
    /// `revision`, and etcd takes none for superseded.
    fn hash_up_to(&self, revision: Revision, compacted: Revision, any: bool) -> u32 {
        let mut counted: Vec<_> = self
            .keys
            .iter()
            .flat_map(|(key, history)| iter::repeat((key, history)).zip(history.kept(compacted)))
            .filter(|((_, history), record)| counts(history, record, revision, compacted, any))
            .map(|((key, _), record)| (key.as_ref(), record))
            .collect();
        counted.sort_unstable_by_key(|(_, record)| record.at);
        let mut hash = crc32c(BUCKET);
        let mut buffer = Vec::new();
        for (key, record) in counted {
            buffer.clear();
            encode(key, record, &mut buffer);
            hash = crc32c_append(hash, &buffer);
        }
        hash
    }
}

/// Whether etcd finds anything of a key to keep at `revision` (`keyIndex.keep`): not of one that was deleted there and written again
/// in the same transaction, as it looks at the life that ended.
fn is_kept_by_etcd(history: &History, revision: Revision) -> bool {
    let there = history.records().iter().rev().skip_while(|record| record.at.revision > revision);
    let was_deleted = there.take_while(|record| record.at.revision == revision).any(|record| record.live.is_none());
    history.at(revision).is_some() && !was_deleted
}

/// Whether a record goes into the hash at `revision`: of those that a compaction would drop there, the ones up to the
/// last compaction do not, since a member that compacted later may have dropped them. Nor does a deletion at that very
/// revision, which releases of etcd before 3.5.16 drop.
fn counts(history: &History, record: &Record, revision: Revision, compacted: Revision, any: bool) -> bool {
    let superseded = || any && history.at(revision).is_none_or(|(at, _)| at != record.at);
    record.at.revision <= revision
        && (record.at.revision > compacted || !superseded())
        && (record.at.revision != compacted || record.live.is_some())
}

/// A change as etcd stores it: the revision, `_`, its turn, `t` for a deletion; then the key-value.
fn encode(key: &[u8], record: &Record, buffer: &mut Vec<u8>) {
    buffer.extend_from_slice(&record.at.revision.0.to_be_bytes());
    buffer.push(b'_');
    buffer.extend_from_slice(&record.at.sub.to_be_bytes());
    let kv = match &record.live {
        Some(live) => live.key_value(key, record.at),
        None => {
            buffer.push(b't');
            KeyValue { key: key.to_vec(), ..KeyValue::default() }
        }
    };
    buffer.extend_from_slice(&kv.encode_to_vec());
}

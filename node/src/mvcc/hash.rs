//! One number for all that the keys hold and held.
//!
//! It is etcd's own (`kvHasher` in server/storage/mvcc/hash.go): CRC-32C over the name of etcd's bucket and then, for each
//! change in order, its place and the key-value as protobuf. Only what the changes say goes in, never how it is stored, so
//! members agree whatever their history of snapshots, and so does an etcd that was given the same requests.

use std::iter;

use crc32c::{crc32c, crc32c_append};
use prost::Message;
use proto::{Revision, etcdserverpb::HashKvResponse, mvccpb::KeyValue};

use super::{
    KeyRange, Store, header,
    history::{History, Record},
};
use crate::api_error::ApiError;

/// The name of the bucket that etcd keeps its keys in.
const BUCKET: &[u8] = b"key";

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
            hash: self.hash_up_to(revision),
            compact_revision: self.compacted.0,
            hash_revision: revision.0,
        })
    }

    fn hash_up_to(&self, revision: Revision) -> u32 {
        // Where no key is left etcd takes none for superseded.
        let any = self.alive(KeyRange::From(&[]), revision).next().is_some();
        let mut counted: Vec<_> = self
            .keys
            .iter()
            .flat_map(|(key, history)| iter::repeat((key, history)).zip(history.kept(self.compacted)))
            .filter(|((_, history), record)| self.counts(history, record, revision, any))
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

    /// Whether a record goes into the hash at `revision`: of those that a compaction would drop there, the ones up to the
    /// last compaction do not, since a member that compacted later may have dropped them. Nor does a deletion at that very
    /// revision, which releases of etcd before 3.5.16 drop.
    fn counts(&self, history: &History, record: &Record, revision: Revision, any: bool) -> bool {
        let superseded = || any && history.at(revision).is_none_or(|(at, _)| at != record.at);
        record.at.revision <= revision
            && (record.at.revision > self.compacted || !superseded())
            && (record.at.revision != self.compacted || record.live.is_some())
    }
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

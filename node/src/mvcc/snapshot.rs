//! A store as bytes: how it is written.
//!
//! The format is in `proto/state.proto`. What can be told from the records is not stored: the list of changes, and which
//! keys a lease holds.

use std::{iter, mem};

use bytes::Bytes;
use crc32c::crc32c_append;
use prost::Message;
use proto::LeaseId;

use super::{Store, history::Record};
use crate::{
    lease::Lease,
    stored::{self, part::Content},
};

/// The format that is written, and the newest that is read.
pub(super) const FORMAT: u32 = 1;

/// A part is cut once it has so many bytes of keys and values; a single larger value makes a larger part. It is made in one
/// go, and whoever writes it rests after each (`consensus/src/threads.rs`).
const PART_BYTES: usize = 64 << 10;

/// A value of so many bytes is compressed, where values are.
const COMPRESSED_BYTES: usize = 1024;

/// What a record or lease takes beside its key and value, about.
const OVERHEAD_BYTES: usize = 32;

impl Store {
    /// The whole state as bytes that every release reads, in pieces of some 64 KiB. Equal stores give equal bytes.
    pub fn snapshot(&self) -> impl Iterator<Item = Vec<u8>> {
        self.snapshot_in(false)
    }

    /// The same, with large values compressed or not.
    pub fn snapshot_in(&self, compresses: bool) -> impl Iterator<Item = Vec<u8>> {
        let head = stored::Head { format: FORMAT, revision: self.revision.0, compacted: self.compacted.0 };
        let leases = parts(self.leases.iter().map(lease)).map(|leases| Content::Leases(stored::Leases { leases }));
        let records = parts(self.records(compresses)).map(|records| Content::Records(stored::Records { records }));
        let mut checksum = 0;
        iter::once(Content::Head(head)).chain(leases).chain(records).map(Some).chain(iter::once(None)).map(
            move |content| {
                let end = || Content::End(stored::End { checksum });
                let bytes =
                    stored::Part { content: Some(content.unwrap_or_else(end)) }.encode_length_delimited_to_vec();
                checksum = crc32c_append(checksum, &bytes);
                bytes
            },
        )
    }

    fn records(&self, compresses: bool) -> impl Iterator<Item = (stored::Record, usize)> {
        self.kept().flat_map(move |(key, records)| {
            let keys = iter::once(Some(key)).chain(iter::repeat(None));
            keys.zip(records).map(move |(key, one)| record(key, one, compresses))
        })
    }
}

/// A record, and about how many bytes it takes; `key` where it is not that of the record before.
fn record(key: Option<&Bytes>, record: &Record, compresses: bool) -> (stored::Record, usize) {
    let mut written = stored::Record {
        key: key.cloned(),
        mod_revision: record.at.revision.0,
        sub: record.at.sub,
        ..stored::Record::default()
    };
    if let Some(live) = &record.live {
        written.create_revision = live.created.0;
        written.version = live.version;
        written.lease = live.lease.0;
        match compresses.then(|| compressed(&live.value)).flatten() {
            Some(value) => written.compressed_value = value,
            None => written.value = live.value.clone(),
        }
    }
    let value = written.value.len() + written.compressed_value.len();
    let size = OVERHEAD_BYTES + key.map_or(0, |key| key.len()) + value;
    (written, size)
}

/// A large value as it is stored where that is shorter: as an LZ4 block behind its length.
fn compressed(value: &Bytes) -> Option<Bytes> {
    if value.len() < COMPRESSED_BYTES {
        return None;
    }
    let block = lz4_flex::compress_prepend_size(value);
    (block.len() < value.len()).then(|| block.into())
}

/// A value that was stored so.
///
/// # Errors
/// It is damaged.
pub(super) fn uncompressed(block: &Bytes) -> Result<Bytes, &'static str> {
    let (length, _) = lz4_flex::block::uncompressed_size(block).map_err(|_| "a compressed value without its length")?;
    // One byte of a block stands for 255 at most: what claims more is no reason to take memory for it.
    if length > block.len().saturating_mul(255) {
        return Err("a compressed value of a length that cannot be");
    }
    let value = lz4_flex::decompress_size_prepended(block).map_err(|_| "a compressed value that cannot be read")?;
    match value.len() == length {
        true => Ok(value.into()),
        false => Err("a compressed value of another length than it says"),
    }
}

fn lease((id, lease): (LeaseId, &Lease)) -> (stored::Lease, usize) {
    let written = stored::Lease { id: id.0, granted_s: lease.granted_s(), checkpointed_s: lease.checkpointed_s() };
    (written, OVERHEAD_BYTES)
}

/// Cuts a sequence into parts by size.
fn parts<T>(items: impl Iterator<Item = (T, usize)>) -> impl Iterator<Item = Vec<T>> {
    let (mut items, mut next) = (items, Vec::new());
    iter::from_fn(move || {
        let mut bytes = 0;
        while bytes < PART_BYTES
            && let Some((item, size)) = items.next()
        {
            next.push(item);
            bytes += size;
        }
        Some(mem::take(&mut next)).filter(|part| !part.is_empty())
    })
}

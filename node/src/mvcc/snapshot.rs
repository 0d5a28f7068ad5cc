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

/// What a record or lease takes beside its key and value, about.
const OVERHEAD_BYTES: usize = 32;

impl Store {
    /// The whole state as bytes, in pieces of some 64 KiB. Equal stores give equal bytes.
    pub fn snapshot(&self) -> impl Iterator<Item = Vec<u8>> {
        let head = stored::Head { format: FORMAT, revision: self.revision.0, compacted: self.compacted.0 };
        let leases = parts(self.leases.iter().map(lease)).map(|leases| Content::Leases(stored::Leases { leases }));
        let records = parts(self.records()).map(|records| Content::Records(stored::Records { records }));
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

    fn records(&self) -> impl Iterator<Item = (stored::Record, usize)> {
        self.kept().flat_map(|(key, records)| {
            let keys = iter::once(Some(key)).chain(iter::repeat(None));
            keys.zip(records).map(|(key, one)| record(key, one))
        })
    }
}

/// A record, and about how many bytes it takes; `key` where it is not that of the record before.
fn record(key: Option<&Bytes>, record: &Record) -> (stored::Record, usize) {
    let mut written = stored::Record {
        key: key.cloned(),
        mod_revision: record.at.revision.0,
        sub: record.at.sub,
        ..stored::Record::default()
    };
    if let Some(live) = &record.live {
        written.create_revision = live.created.0;
        written.version = live.version;
        written.value = live.value.clone();
        written.lease = live.lease.0;
    }
    let size = OVERHEAD_BYTES + key.map_or(0, |key| key.len()) + written.value.len();
    (written, size)
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

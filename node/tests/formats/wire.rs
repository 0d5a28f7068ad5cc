//! Bytes, walked by the lines of a release: which fields are there, and whether that release knows all of them.
//! Source: protobuf, "Encoding".

use std::collections::{BTreeMap, BTreeSet};

/// Which message a field of bytes holds.
pub const HELD: [(&str, &str); 12] = [
    ("baton.raft.Payload.command", "baton.entry.Proposal"),
    ("baton.raft.Entry.payload", "baton.raft.Payload"),
    ("baton.entry.Proposal.entry", "baton.entry.Entry"),
    ("baton.entry.Entry.put", "etcdserverpb.PutRequest"),
    ("baton.entry.Entry.delete_range", "etcdserverpb.DeleteRangeRequest"),
    ("baton.entry.Entry.txn", "etcdserverpb.TxnRequest"),
    ("baton.entry.Entry.compact", "etcdserverpb.CompactionRequest"),
    ("baton.entry.Entry.lease_grant", "etcdserverpb.LeaseGrantRequest"),
    ("baton.entry.Entry.lease_revoke", "etcdserverpb.LeaseRevokeRequest"),
    ("baton.entry.Entry.lease_checkpoint", "etcdserverpb.LeaseCheckpointRequest"),
    ("baton.entry.Entry.alarm", "etcdserverpb.AlarmRequest"),
    ("baton.entry.Entry.counter_add", "batonpb.AddRequest"),
];

/// What a release knows.
pub struct Known {
    /// A field's name and type, by its message and number.
    fields: BTreeMap<(String, u64), (String, String)>,
}

/// The fields that were met, as in `baton.entry.Entry.put`.
pub type Met = BTreeSet<String>;

impl Known {
    pub fn by(lines: &BTreeSet<String>) -> Self {
        let field = |line: &String| {
            let words: Vec<_> = line.split(' ').collect();
            let [message, number, name, kind, ..] = words[..] else { return None };
            Some(((message.to_owned(), number.parse().ok()?), (name.to_owned(), kind.to_owned())))
        };
        Self { fields: lines.iter().filter_map(field).collect() }
    }

    /// Walks a message.
    ///
    /// # Errors
    /// What the release does not know, and where.
    pub fn walk(&self, message: &str, mut bytes: &[u8], met: &mut Met) -> Result<(), String> {
        while !bytes.is_empty() {
            let tag = varint(&mut bytes).ok_or_else(|| format!("{message}: cut off"))?;
            let (number, wire) = (tag >> 3, tag & 7);
            let place = (message.to_owned(), number);
            let (name, kind) = self.fields.get(&place).ok_or_else(|| format!("{message} has a field {number}"))?;
            let field = format!("{message}.{name}");
            let content = content(wire, &mut bytes).ok_or_else(|| format!("{field}: cut off"))?;
            met.insert(field.clone());
            let held = HELD.iter().find(|(of, _)| *of == field).map(|(_, held)| *held);
            if let (Some(message), 2) = (held.or(kind.contains('.').then_some(kind)), wire) {
                self.walk(message, content, met)?;
            }
        }
        Ok(())
    }

    /// Walks a message that stands behind its length, and leaves what follows.
    ///
    /// # Errors
    /// As [`Known::walk`].
    pub fn walk_delimited(&self, message: &str, bytes: &mut &[u8], met: &mut Met) -> Result<(), String> {
        let content = content(2, bytes).ok_or_else(|| format!("{message}: cut off"))?;
        self.walk(message, content, met)
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn content<'a>(wire: u64, bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = match wire {
        0 => {
            varint(bytes)?;
            0
        }
        1 => 8,
        2 => usize::try_from(varint(bytes)?).ok()?,
        5 => 4,
        _ => return None,
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(content)
}

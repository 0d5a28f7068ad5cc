//! The log: two segments, whose checksums are put right first, as no fuzzer guesses one.

use std::{collections::BTreeMap, sync::Arc};

use crc32c::{crc32c, crc32c_append};
use simulated_disk::{Faults, SimulatedDisk};
use wal::{Entry, EntryId, LogIndex, Options, Payload, Term, Wal, WalError, WriterTurns};

/// node/wal/src/segment.rs and record.rs have the layout.
const HEADER: usize = 40;
const HEAD: usize = 20;

fn name(segment: u64) -> String {
    format!("{segment:016}{}", wal::SUFFIX)
}

fn open(disk: &SimulatedDisk) -> Result<(Wal, WriterTurns), WalError> {
    Wal::open_without_thread(Arc::new(disk.clone()), Options::default(), || {})
}

/// The first four bytes say where the second segment begins.
pub fn decode(bytes: &[u8]) {
    let Some((place, bytes)) = bytes.split_first_chunk() else { return };
    let place = u32::from_le_bytes(*place) as usize % (bytes.len() + 1);
    let (first, second) = bytes.split_at(place);
    let segments = [(1, first), (2, second)].into_iter().filter(|(_, segment)| !segment.is_empty());
    let files: BTreeMap<_, _> = segments.map(|(number, bytes)| (name(number), sealed(number, bytes))).collect();
    let disk = SimulatedDisk::with_files(&files);
    let Ok((wal, mut turns)) = open(&disk) else { return };
    let state = wal.state().unwrap();
    let _ = wal.entries(.., 1 << 20);
    let after = state.last.and_then(|last| last.index.0.checked_add(1)).unwrap_or_default();
    let id = EntryId { term: Term(u64::MAX), leader: 1, index: LogIndex(after) };
    let appended = wal.append([Entry { id, payload: Payload::from_static(b"more") }], |_| {}).is_ok();
    turns.take();
    let (state, vote) = (wal.state().unwrap(), wal.vote().unwrap());
    drop((wal, turns));
    // What was taken once is taken again.
    let (again, _) = open(&disk.after_exit(Faults::default())).unwrap();
    assert_eq!((again.state().unwrap(), again.vote().unwrap()), (state, vote), "appended: {appended}");
}

fn sealed(segment: u64, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() < HEADER {
        return bytes;
    }
    let sum = crc32c(&bytes[..HEADER - 4]);
    bytes[HEADER - 4..HEADER].copy_from_slice(&sum.to_le_bytes());
    let place = crc32c(&segment.to_le_bytes());
    let mut at = HEADER;
    while let Some(head) = bytes.get(at..at + HEAD) {
        let field = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (kind, size) = (field(16), (HEAD + field(8) as usize).next_multiple_of(4));
        let Some(body) = bytes.get(at + HEAD..at + size).filter(|_| kind != 0) else { break };
        let of_body = crc32c(body).to_le_bytes();
        bytes[at + 4..at + 8].copy_from_slice(&of_body);
        let of_head = crc32c_append(crc32c_append(place, &(at as u32).to_le_bytes()), &bytes[at + 4..at + HEAD]);
        bytes[at..at + 4].copy_from_slice(&of_head.to_le_bytes());
        at += size;
    }
    bytes
}

pub fn seeds() -> Vec<Vec<u8>> {
    const FIRST: &[u8] = include_bytes!("../../../node/wal/tests/golden/format-1/0000000000000001.wal");
    const SECOND: &[u8] = include_bytes!("../../../node/wal/tests/golden/format-1/0000000000000002.wal");
    let records = |segment: &[u8]| {
        let end = segment.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        segment[..end.next_multiple_of(4)].to_vec()
    };
    let seed = |first: &[u8], second: &[u8]| {
        [&(first.len() as u32).to_le_bytes(), &records(first)[..], &records(second)].concat()
    };
    let both = {
        let first = records(FIRST);
        [&(first.len() as u32).to_le_bytes()[..], &first, &records(SECOND)].concat()
    };
    vec![both, seed(FIRST, &[])]
}

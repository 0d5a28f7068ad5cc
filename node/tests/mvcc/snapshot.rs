//! `node/proto/state.proto`: a state that was written is read back the same, now and by every later release.

use node::mvcc::{Restore, SnapshotError, Store};
use proto::etcdserverpb::{LeaseCheckpoint, LeaseCheckpointRequest, LeaseGrantRequest, PutRequest};

use crate::word::{Operation, compaction, delete, grant, put, put_leased, store, txn};

/// What format 1 is, written once; it is never written anew, since members have it on their disks.
const GOLDEN: &[u8] = include_bytes!("../golden/state-1.bin");

/// Something of everything: histories, deletions, places within a revision, leases, bytes that are no text, a compaction.
fn golden() -> Store {
    let mut store = store("a=1 b=2 gone=3 -gone a=4");
    store.lease_grant(&LeaseGrantRequest { id: 0x7fff_ffff_ffff_fff1, ttl: 60 }).unwrap();
    store.lease_grant(&grant(-7)).unwrap();
    let checkpoints = vec![LeaseCheckpoint { id: -7, remaining_ttl: 42 }];
    store.lease_checkpoint(&LeaseCheckpointRequest { checkpoints });
    store.put(put_leased("held", "5", -7)).unwrap();
    let bytes = PutRequest { key: vec![0, 0xff, 0x80], value: (0..=255).collect(), ..put("", "") };
    store.txn(txn(vec![], vec![delete("b", "").op(), bytes.op(), put("empty", "").op()], vec![])).unwrap();
    store.compact(&compaction(5)).unwrap();
    store.put(put("a", "6")).unwrap();
    store.delete_range(&delete("a", ""));
    store
}

#[test]
fn format_1_is_as_it_was_first_written() {
    let written = golden().snapshot().collect::<Vec<_>>().concat();
    assert_eq!(written, GOLDEN, "a stored format is never changed: write a new one");
    assert_eq!(restored(GOLDEN, GOLDEN.len()).unwrap(), golden());
}

#[test]
fn a_state_is_read_back_however_it_is_cut() {
    for store in [Store::default(), store("a=1"), golden()] {
        let bytes = store.snapshot().collect::<Vec<_>>().concat();
        for piece in [1, 2, 3, 7, 64, bytes.len()] {
            assert_eq!(restored(&bytes, piece).unwrap(), store, "in pieces of {piece}");
        }
    }
}

#[test]
fn a_large_state_comes_in_pieces() {
    let mut store = Store::default();
    for number in 0..40 {
        store.put(put(&format!("key {}", number % 4), &"x".repeat(10_000))).unwrap();
    }
    let pieces: Vec<_> = store.snapshot().collect();
    assert_eq!(pieces.len(), 8, "a head, the records in six, an end");
    assert!(pieces.iter().all(|piece| piece.len() < 80_000));
    assert_eq!(restored(&pieces.concat(), 65_536).unwrap(), store);
}

#[test]
fn what_was_restored_goes_on_as_what_it_was_written_from() {
    let mut original = golden();
    let mut restored = restored(GOLDEN, 100).unwrap();
    for store in [&mut original, &mut restored] {
        store.put(put_leased("later", "1", -7)).unwrap();
        store.compact(&compaction(8)).unwrap();
        store.lease_revoke(&proto::etcdserverpb::LeaseRevokeRequest { id: -7 }).unwrap();
    }
    assert_eq!(original, restored);
    assert_eq!(original.hash_kv(0), restored.hash_kv(0));
    assert!(original.snapshot().eq(restored.snapshot()));
}

#[test]
fn a_damaged_state_is_refused() {
    for length in 0..GOLDEN.len() {
        assert!(restored(&GOLDEN[..length], 4096).is_err(), "cut off at {length}");
    }
    for bit in 0..GOLDEN.len() * 8 {
        let mut bytes = GOLDEN.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(restored(&bytes, 4096).is_err(), "bit {bit} flipped");
    }
    for (more, what) in [(&GOLDEN[..1], "left over"), (GOLDEN, "twice")] {
        assert!(restored(&[GOLDEN, more].concat(), 4096).is_err(), "{what}");
    }
}

#[test]
fn a_newer_format_and_an_unknown_part_are_refused_by_name() {
    // A head with nothing but a format, and a part whose kind is 15.
    let newer = restored(&[4, 0x0a, 2, 0x08, 2], 1);
    assert_eq!(
        newer.unwrap_err().to_string(),
        "a stored state of format 2, which is newer than the 1 that this release reads"
    );
    let unknown = restored(&[2, 0x7a, 0], 1);
    assert!(matches!(unknown, Err(SnapshotError::Damaged("a part out of order"))), "{unknown:?}");
    // A length that never ends.
    assert!(matches!(restored(&[0xff; 11], 1), Err(SnapshotError::Part(_))));
    assert!(matches!(restored(&[0xff; 9], 1), Err(SnapshotError::CutOff)));
}

pub fn restored(bytes: &[u8], piece: usize) -> Result<Store, SnapshotError> {
    let mut restore = Restore::default();
    bytes.chunks(piece).try_for_each(|piece| restore.push(piece))?;
    restore.finish()
}

/// What is large and repeats itself is stored shorter, and read as it was; what is damaged is an error.
#[test]
fn large_values_are_compressed_and_read_as_they_were() {
    let mut store = Store::default();
    for (key, value) in [("a", vec![7; 100_000]), ("b", (0..=255).cycle().take(900).collect()), ("c", vec![])] {
        store.put(PutRequest { key: key.into(), value, ..PutRequest::default() }).unwrap();
    }
    let plain: Vec<u8> = store.snapshot().flatten().collect();
    let compressed: Vec<u8> = store.snapshot_in(true).flatten().collect();
    assert!(plain.len() > 100_000 && compressed.len() < 2_500, "{} of {} bytes", compressed.len(), plain.len());
    let read = restored(&compressed, 100).unwrap();
    assert!(read == store && read.snapshot().eq(store.snapshot()));
    for at in 0..compressed.len() {
        let mut flipped = compressed.clone();
        flipped[at] ^= 0x10;
        assert!(restored(&flipped, 5000).is_err(), "byte {at}");
    }
}

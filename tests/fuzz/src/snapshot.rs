//! A stored snapshot: what is in its file, and the state alone. A fuzzer's build takes any checksum for right.

use std::{collections::BTreeMap, sync::Arc};

use consensus::{Applier, Snapshots};
use node::{
    cluster::member::Starts,
    features::FEATURES,
    machine::{Machine, Proposals},
    state::{Form, Restore, State},
};
use proto::{MemberId, etcdserverpb::RangeRequest};
use simulated_disk::SimulatedDisk;

const FILE: &str = "0000000000000005-0000000000000001.snap";

/// The first byte says which of the two it is.
pub fn decode(bytes: &[u8]) {
    match bytes.split_first() {
        Some((0, bytes)) => file(bytes),
        Some((_, bytes)) => state(bytes),
        None => {}
    }
}

fn file(bytes: &[u8]) {
    // On a runtime of one thread it is read on this one.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _on = runtime.enter();
    let disk = SimulatedDisk::with_files(&BTreeMap::from([(FILE.to_owned(), bytes.to_vec())]));
    let proposals = Proposals::new(MemberId(1), Starts(1));
    let machine = Machine::new("3.7.0".parse().unwrap(), FEATURES, proposals);
    let _ = Applier::open(Arc::new(machine), Snapshots::open(Arc::new(disk)).unwrap());
}

fn restored(pieces: impl Iterator<Item = impl AsRef<[u8]>>) -> Option<State> {
    let mut restore = Restore::default();
    for piece in pieces {
        restore.push(piece.as_ref()).ok()?;
    }
    restore.finish().ok()
}

fn state(bytes: &[u8]) {
    let Some(state) = restored([bytes].into_iter()) else { return };
    assert_eq!(restored(bytes.chunks(7)).as_ref(), Some(&state), "however it is cut");
    assert_eq!(restored(state.snapshot(Form::FIRST)).as_ref(), Some(&state), "what was read is written and read again");
    let _ = state.keys.hash_kv(0).unwrap();
    let all = RangeRequest { key: vec![0], range_end: vec![0], ..RangeRequest::default() };
    let _ = state.keys.range(&all).unwrap();
}

pub fn seeds() -> Vec<Vec<u8>> {
    const HEAD: &[u8] = include_bytes!("../../../node/tests/golden/state-head-1.bin");
    const STATE: &[u8] = include_bytes!("../../../node/tests/golden/state-1.bin");
    const SNAPSHOT: &[u8] = include_bytes!("../../../node/consensus/tests/golden/snapshot-1.snap");
    let empty = State::default().snapshot(Form::FIRST).collect::<Vec<_>>().concat();
    vec![[&[1], HEAD, STATE].concat(), [&[1][..], &empty].concat(), [&[0], SNAPSHOT].concat()]
}

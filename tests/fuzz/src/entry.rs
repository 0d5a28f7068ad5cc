//! What stands in the log: a proposal, and the entry in it. What is read is applied, too.

use bytes::Bytes;
use node::{
    entry::Entry,
    features::FEATURES,
    machine::Proposal,
    state::{Form, State},
};
use proto::{ClusterVersion, LogIndex};

const NEWEST: ClusterVersion = ClusterVersion { major: 3, minor: 7 };

pub fn decode(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    read(&bytes);
    if let Ok(proposal) = Proposal::decode(bytes) {
        assert_eq!(Proposal::decode(proposal.encode().into()), Ok(proposal.clone()));
        read(&proposal.entry);
    }
}

fn read(bytes: &Bytes) {
    let Ok(entry) = Entry::decode(bytes.clone(), NEWEST) else { return };
    assert_eq!(Entry::decode(&entry.encode()[..], NEWEST), Ok(entry.clone()));
    let mut state = State::default();
    for number in 1..=2 {
        let _ = state.apply(LogIndex(number), entry.clone(), &FEATURES);
    }
    let _ = state.snapshot(Form::FIRST).count();
}

pub fn seeds() -> Vec<Vec<u8>> {
    crate::delimited(include_bytes!("../../../node/tests/golden/entries-1.bin"))
}

//! All messages of members, for a fuzzer that knows none of them.

use bytes::Bytes;

use super::{Ballot, Lost, Numbered, Offer, TakeOver, Wire};
use crate::types::{AppendRequest, AppendResult, StoredMembership, TransferRequest, VoteResponse};

/// Reads bytes as the message whose number comes first; one that is read is the same when it is written and read again.
pub fn fuzz(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let read = match kind {
        0 => read::<Numbered<AppendRequest>>,
        1 => read::<Numbered<AppendResult>>,
        2 => read::<Ballot>,
        3 => read::<VoteResponse>,
        4 => read::<TransferRequest>,
        5 => read::<TakeOver>,
        6 => read::<Lost>,
        7 => read::<Offer>,
        8 => read::<StoredMembership>,
        _ => return,
    };
    read(Bytes::copy_from_slice(bytes));
}

fn read<T: Wire>(bytes: Bytes) {
    let Ok(value) = T::decode(bytes) else { return };
    let written = value.encode();
    assert_eq!(T::decode(written.clone()).map(|again| again.encode()), Ok(written));
}

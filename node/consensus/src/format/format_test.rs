//! Every message there and back, against bytes that stay, and against damage.

use std::collections::BTreeMap;

use bytes::Bytes;
use openraft::{BasicNode, raft::StreamAppendError};

use super::{
    Ballot, Command, FormatError, Lost, Numbered, Offer, TakeOver, Wire, decode_payload, encode_payload, log_id,
};
use crate::types::{
    AppendRequest, AppendResult, Entry, LeaderId, Membership, Payload, StoredMembership, TransferRequest, Vote,
    VoteRequest, VoteResponse,
};

fn vote(committed: bool) -> Vote {
    Vote { leader_id: LeaderId { term: 7, voted_for: 0xabc }, committed }
}

fn membership() -> Membership {
    let nodes = [1, 2, 3].map(|id| (id, BasicNode { addr: format!("http://10.0.0.{id}:2380") }));
    Membership::new(vec![[1, 2].into(), [2, 3].into()], BTreeMap::from(nodes)).unwrap()
}

fn entries() -> Vec<Entry> {
    let payloads = [
        Payload::Membership(membership()),
        Payload::Blank,
        Payload::Normal(Command::new(Bytes::from_static(b"a command"))),
    ];
    let entry = |(at, payload)| Entry { log_id: log_id(7, at as u64), payload };
    payloads.into_iter().enumerate().map(entry).collect()
}

/// The log's entries are compared by their bytes, and what is read of the wire is written into a log as it was read.
#[test]
fn equal_commands_have_equal_bytes_however_they_were_written() {
    let canonical = Command::new(Bytes::from_static(b"b"));
    for written in [
        &b"\x12\x01b"[..],
        b"\x12\x01b\x78\x01",  // with a field that nobody knows behind it,
        b"\x78\x01\x12\x01b",  // or before it
        b"\x12\x01a\x12\x01b", // twice: the last one counts
        b"\x92\x00\x01b",      // a longer tag,
        b"\x12\x81\x00b",      // and a longer length
    ] {
        let id = wal::EntryId { term: wal::Term(1), leader: 0, index: wal::LogIndex(1) };
        let entry = decode_payload(wal::Entry { id, payload: Bytes::from_static(written) }).unwrap();
        let Payload::Normal(command) = entry.payload else { panic!("{written:?} is no command") };
        assert_eq!(
            (command.bytes(), command.payload()),
            (Bytes::from_static(b"b"), canonical.payload()),
            "{written:?}"
        );
    }
}

/// One message of every kind, and whether bytes are read as the same one again.
struct Kind {
    bytes: Bytes,
    reread: fn(Bytes) -> Result<Bytes, FormatError>,
}

fn kind<T: Wire>(value: T) -> Kind {
    Kind { bytes: value.encode(), reread: |bytes| T::decode(bytes).map(|value| value.encode()) }
}

fn all() -> Vec<Kind> {
    let request = AppendRequest {
        vote: vote(true),
        prev_log_id: Some(log_id(6, 41)),
        entries: entries(),
        leader_commit: Some(log_id(6, 40)),
    };
    let numbered = |what: AppendResult| kind(Numbered { sequence: 9, what });
    let mut asked = VoteRequest::new(vote(false), Some(log_id(6, 41)));
    asked.leadership_transfer = true;
    vec![
        kind(log_id(7, 300)),
        kind(vote(true)),
        kind(StoredMembership::new(Some(log_id(1, 0)), membership())),
        kind(StoredMembership::default()),
        kind(Numbered { sequence: 9, what: request }),
        numbered(Ok(Some(log_id(7, 42)))),
        numbered(Ok(None)),
        numbered(Err(StreamAppendError::Conflict(log_id(6, 41)))),
        numbered(Err(StreamAppendError::HigherVote(vote(false)))),
        kind(Ballot { request: asked, is_pre_vote: false }),
        kind(Ballot { request: VoteRequest::new(vote(false), None), is_pre_vote: true }),
        kind(VoteResponse::new(vote(false), Some(log_id(6, 41)), true)),
        kind(TransferRequest::new(vote(true), 3, Some(log_id(7, 42)))),
        kind(TakeOver::Done),
        kind(TakeOver::Follows(vote(true))),
        kind(TakeOver::Behind(Some(log_id(7, 40)))),
    ]
}

fn lost() -> Kind {
    kind(Lost { leader: vote(true), acknowledged: log_id(7, 300) })
}

fn offer() -> Kind {
    kind(Offer { vote: vote(true), last: Some(log_id(7, 300)), size: 301, from: 2 })
}

/// What was written once is read by every later release. Never written anew: another meaning is another field.
#[test]
fn the_bytes_are_those_of_the_release_that_first_wrote_them() {
    let golden = include_bytes!("../../tests/golden/messages-1.bin");
    let mut written = Vec::new();
    for kind in all() {
        prost::encode_length_delimiter(kind.bytes.len(), &mut written).unwrap();
        written.extend_from_slice(&kind.bytes);
        assert_eq!((kind.reread)(kind.bytes.clone()), Ok(kind.bytes));
    }
    assert!(written == golden, "the format has changed");
    assert_eq!(lost().bytes, b"\x0a\x07\x08\x07\x10\xbc\x15\x18\x01\x12\x05\x08\x07\x10\xac\x02"[..]);
    assert_eq!((lost().reread)(lost().bytes), Ok(lost().bytes));
    assert_eq!(
        offer().bytes,
        b"\x0a\x07\x08\x07\x10\xbc\x15\x18\x01\x10\xad\x02\x18\x02\x22\x05\x08\x07\x10\xac\x02"[..]
    );
    assert_eq!((offer().reread)(offer().bytes), Ok(offer().bytes));
}

#[test]
fn an_entry_comes_back_from_the_log_as_it_went() {
    for entry in entries() {
        let logged = encode_payload(&entry);
        assert_eq!((logged.id.term.0, logged.id.index.0), (7, entry.log_id.index));
        assert_eq!(decode_payload(logged).unwrap(), entry);
    }
}

#[test]
fn damaged_bytes_are_an_error_or_another_message_and_never_a_panic() {
    for kind in all().into_iter().chain([lost(), offer()]) {
        for at in 0..kind.bytes.len() {
            let _ = (kind.reread)(kind.bytes.slice(..at));
            for bit in 0..8 {
                let mut flipped = kind.bytes.to_vec();
                flipped[at] ^= 1 << bit;
                let _ = (kind.reread)(flipped.into());
            }
        }
    }
}

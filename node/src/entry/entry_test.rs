use prost::Message;
use proto::{
    ClusterId, LogIndex, MemberId,
    etcdserverpb::{LeaseCheckpoint, RequestOp, alarm_request::AlarmAction, request_op::Request},
};

use super::*;
use crate::{
    cluster::{
        entry::Entry as E,
        member::{Attributes, Incarnation, Member, Proposal, StartId, Starts},
    },
    features::Features,
    stored,
};

const V3_6: ClusterVersion = ClusterVersion { minor: 6, ..FIRST };

fn features(list: &[(&str, bool)]) -> Features {
    list.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect()
}

fn all() -> Vec<Entry> {
    let put = PutRequest { key: b"k".to_vec(), value: b"v".to_vec(), lease: 7, ..PutRequest::default() };
    let delete = DeleteRangeRequest { key: b"k".to_vec(), range_end: b"l".to_vec(), prev_kv: true };
    let operation = RequestOp { request: Some(Request::RequestPut(put.clone())) };
    let checkpoints = vec![LeaseCheckpoint { id: 7, remaining_ttl: 3 }];
    let attributes = Attributes {
        name: "m1".into(),
        client_urls: vec!["http://127.0.0.1:2379".into()],
        proposal: Some(Proposal { version: V3_6, features: features(&[("LeaseCheckpoint", true), ("Other", false)]) }),
    };
    let silent = Attributes { proposal: None, ..attributes.clone() };
    let nothing =
        Attributes { proposal: Some(Proposal { version: V3_6, features: Features::default() }), ..attributes.clone() };
    let publish = |attributes| {
        EntryKind::Cluster(E::Publish {
            member: MemberId(1),
            starts: Starts(2),
            start_id: None,
            incarnation: None,
            attributes,
        })
    };
    let founders = [(MemberId(1), ("m1".to_owned(), vec!["http://127.0.0.1:2380".to_owned()]))];
    let kinds = [
        EntryKind::Put(put),
        EntryKind::DeleteRange(delete),
        EntryKind::Txn(TxnRequest { success: vec![operation], ..TxnRequest::default() }),
        EntryKind::Compact(CompactionRequest { revision: 5, physical: false }),
        EntryKind::LeaseGrant(LeaseGrantRequest { ttl: 60, id: 7 }),
        EntryKind::LeaseRevoke(LeaseRevokeRequest { id: 7 }),
        EntryKind::LeaseCheckpoint(LeaseCheckpointRequest { checkpoints }),
        EntryKind::Alarm(AlarmRequest { action: AlarmAction::Activate.into(), member_id: 1, alarm: 1 }),
        EntryKind::Cluster(E::Bootstrap { id: ClusterId(9), members: founders.into() }),
        publish(attributes),
        publish(silent),
        publish(nothing),
        EntryKind::Cluster(E::Reset { prepares: V3_6 }),
        EntryKind::Cluster(E::SetVersion { version: V3_6, heard: [(MemberId(1), Starts(2))].into() }),
        EntryKind::Cluster(E::Decide { features: features(&[("LeaseCheckpoint", true)]), inputs: LogIndex(4) }),
        EntryKind::Cluster(E::Decide { features: Features::default(), inputs: LogIndex(4) }),
    ];
    let plain = kinds.into_iter().map(Entry::from);
    let needy = Entry { requires: vec!["LeaseCheckpoint".into()], ..EntryKind::LeaseRevoke(Default::default()).into() };
    plain.chain([needy]).collect()
}

/// What was written once is read by every later release. Never written anew: another meaning is another field.
#[test]
fn the_bytes_are_those_of_the_release_that_first_wrote_them() {
    let golden = include_bytes!("../../tests/golden/entries-1.bin");
    let mut written = Vec::new();
    for entry in all() {
        prost::encode_length_delimiter(entry.encode().len(), &mut written).unwrap();
        written.extend(entry.encode());
    }
    assert!(written == golden, "the format has changed");
    let mut rest = &golden[..];
    for entry in all() {
        let length = prost::decode_length_delimiter(&mut rest).unwrap();
        let (bytes, after) = rest.split_at(length);
        assert_eq!(Entry::decode(bytes, V3_6).as_ref(), Ok(&entry));
        rest = after;
    }
}

/// The kinds that came later.
#[test]
fn a_downgrade_s_bytes_are_those_that_were_first_written() {
    let to = Some(FIRST);
    let written: [(_, &[u8]); 2] = [
        (to, b"\x0a\x04\x08\x03\x10\x05\xc2\x01\x06\x0a\x04\x08\x03\x10\x05"),
        (None, b"\x0a\x04\x08\x03\x10\x05\xc2\x01\x00"),
    ];
    for (to, golden) in written {
        let entry = Entry::from(EntryKind::Cluster(E::Downgrade { to }));
        assert_eq!(entry.encode(), golden, "the format has changed");
        assert_eq!(Entry::decode(golden, FIRST), Ok(entry));
    }
}

#[test]
fn a_move_s_bytes_are_those_that_were_first_written() {
    let golden = b"\x0a\x04\x08\x03\x10\x05\xca\x01\x12\x08\x07\x12\x0ehttps://h:2380";
    let entry =
        Entry::from(EntryKind::Cluster(E::Move { member: MemberId(7), peer_urls: vec!["https://h:2380".into()] }));
    assert_eq!(entry.encode(), golden, "the format has changed");
    assert_eq!(Entry::decode(&golden[..], FIRST), Ok(entry));
}

#[test]
fn a_counter_s_bytes_are_those_that_were_first_written() {
    let golden = b"\x0a\x04\x08\x03\x10\x06\x92\x01\x05\x0a\x01n\x10\x05";
    let entry = Entry::from(EntryKind::CounterAdd(AddRequest { key: b"n".to_vec(), by: -3 }));
    assert_eq!(entry.encode(), golden, "the format has changed");
    assert_eq!(Entry::decode(&golden[..], V3_6), Ok(entry));
}

/// The fields that came later.
#[test]
fn a_start_s_bytes_are_those_that_were_first_written() {
    let (incarnation, start_id) = (Incarnation::read(0x0102_0304_0506_0708), StartId::read(0x1112_1314_1516_1718));
    let (member, starts, attributes) = (MemberId(7), Starts(2), Attributes::default());
    let numbers = b"\x08\x07\x06\x05\x04\x03\x02\x01";
    let ids = b"\x18\x17\x16\x15\x14\x13\x12\x11";
    let golden =
        [&b"\x0a\x04\x08\x03\x10\x05\xaa\x01\x18\x08\x07\x10\x02\x1a\x00\x21"[..], numbers, b"\x29", ids].concat();
    let entry = Entry::from(EntryKind::Cluster(E::Publish { member, starts, start_id, incarnation, attributes }));
    assert_eq!(entry.encode(), golden, "the format has changed");
    assert_eq!(Entry::decode(&golden[..], FIRST), Ok(entry));

    let member = Member { starts, start_id, incarnation, ..Member::default() };
    let cluster = cluster::Cluster { members: [(MemberId(7), member)].into(), ..Default::default() };
    let golden = [&b"\x1a\x18\x08\x07\x20\x02\x2a\x00\x31"[..], numbers, b"\x39", ids, b"\x22\x00"].concat();
    assert_eq!(encode_cluster(&cluster).encode_to_vec(), golden, "the format has changed");
    assert_eq!(decode_cluster(stored::cluster::Cluster::decode(&golden[..]).unwrap()), cluster);
}

#[test]
fn a_downgrade_under_way_is_stored_as_it_first_was() {
    let lower = FIRST;
    let cluster = cluster::Cluster { downgrade: Some(lower), behind: Some(LogIndex(7)), ..Default::default() };
    let golden = b"\x22\x00\x32\x04\x08\x03\x10\x05\x38\x07";
    assert_eq!(encode_cluster(&cluster).encode_to_vec(), golden, "the format has changed");
    assert_eq!(decode_cluster(stored::cluster::Cluster::decode(&golden[..]).unwrap()), cluster);
}

#[test]
fn what_a_newer_release_wrote_is_not_read() {
    for entry in all() {
        let found = Entry::decode(&entry.encode()[..], FIRST);
        match entry.what {
            EntryKind::LeaseCheckpoint(_) => assert_eq!(found, Err(EntryError::Newer(V3_6))),
            // A field that 3.5 would pass over without a word.
            _ if !entry.requires.is_empty() => assert_eq!(found, Err(EntryError::Newer(V3_6))),
            _ => assert_eq!(found.as_ref(), Ok(&entry), "3.5 knows the gate's entries, too"),
        }
    }
    let mut foreign = stored::entry::Entry::decode(&all()[0].encode()[..]).unwrap();
    foreign.since = Some(stored::cluster::Version { major: 3, minor: 9 });
    let error = Entry::decode(&foreign.encode_to_vec()[..], V3_6).unwrap_err();
    assert_eq!(error.to_string(), "entry of release 3.9, which this member does not know");
}

#[test]
fn damaged_bytes_are_an_error_or_another_entry_and_never_a_panic() {
    for entry in all() {
        let bytes = entry.encode();
        assert!(Entry::decode(&[][..], V3_6).is_err());
        for at in 0..bytes.len() {
            let _ = Entry::decode(&bytes[..at], V3_6);
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let _ = Entry::decode(&flipped[..], V3_6);
            }
        }
    }
}

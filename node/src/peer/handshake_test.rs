use proto::Release;
use tonic::Code;

use super::*;
use crate::{
    cluster::{entry::Entry as ClusterEntry, member::Attributes, membership::Membership},
    entry::EntryKind,
    features::FEATURES,
    machine::Proposals,
};

fn handshake(cluster: u64, member: u64) -> Handshake {
    let (member, starts, release) = (MemberId(member), Starts(300), Release::new(3, 6, 0));
    let machine = Machine::new(release.clone(), FEATURES, Proposals::new(member, starts));
    let identity = Identity::of_none(ClusterId(cluster), member, release, starts);
    Handshake::new(Arc::new(identity), machine, true)
}

/// What was sent once is read by every later release. Never written anew: another meaning is another field.
#[test]
fn the_bytes_are_those_of_the_release_that_first_sent_them() {
    let call = handshake(0x1234, 0xabc).call(MemberId(7), ());
    let first = b"\x08\x01\x10\xb4\x24\x18\xbc\x15\x22\x053.6.0\x28\xac\x02\x30\x07";
    // What it speaks and demands was said later, behind it.
    let golden = [&first[..], b"\x60\x01\x68\x01\x78\x01"].concat();
    let sum = crc32c::crc32c(&golden).to_le_bytes();
    let framed = [&[0x0a, golden.len() as u8][..], &golden, b"\x15", &sum].concat();
    assert_eq!(call.metadata().get_bin(KEY).unwrap().to_bytes().unwrap(), framed);
}

/// A release that knows no range, no policy and no waiting is heard as it was.
#[test]
fn what_an_earlier_release_says_is_read() {
    let first = b"\x08\x01\x10\x01\x18\xbc\x15\x22\x053.6.0\x28\xac\x02\x30\x07";
    let mut metadata = MetadataMap::new();
    insert_bytes(&mut metadata, Bytes::from_static(first));
    let remote = handshake(1, 7).caller(&metadata).unwrap();
    let protocols = Protocols { lowest: 1, highest: 1 };
    assert_eq!(remote.terms, Terms { release: Release::new(3, 6, 0), protocols, policy: None });
    assert!(!remote.waits && remote.version.is_none());
}

#[test]
fn a_handshake_with_a_flipped_bit_is_none() {
    let own = handshake(1, 7);
    let call = handshake(1, 0xabc).call(MemberId(7), ());
    let bytes = call.metadata().get_bin(KEY).unwrap().to_bytes().unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let mut metadata = MetadataMap::new();
        metadata.insert_bin(KEY, MetadataValue::from_bytes(&flipped));
        let status = own.caller(&metadata).unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "bit {bit}: {status}");
    }
}

#[test]
fn who_is_not_meant_or_of_another_cluster_is_refused_with_the_reason() {
    let own = handshake(1, 7);
    let caller = |cluster, to| own.caller(handshake(cluster, 0xabc).call(MemberId(to), ()).metadata());
    assert_eq!(caller(1, 7).unwrap().member, MemberId(0xabc));
    assert_eq!(caller(1, 8).unwrap_err().message(), "this is member 7, and member 8 was meant");
    let other = caller(2, 7).unwrap_err();
    assert!(other.message().contains("member abc is of cluster 2, this one of 1"), "{other}");
    assert!(own.caller(&MetadataMap::new()).unwrap_err().message().contains("without a handshake"));
    let answer = handshake(1, 0xabc).answer(());
    assert!(own.answerer(MemberId(0xabc), answer.metadata()).is_ok());
    let wrong = own.answerer(MemberId(9), answer.metadata()).unwrap_err();
    assert_eq!(wrong.message(), "member 9 was called, and member abc answered");
}

#[test]
fn a_refusal_says_of_which_cluster_the_member_is_that_was_called() {
    let own = handshake(1, 7);
    let refused = |cluster, member| {
        let refusal = handshake(cluster, member).refusal(Status::failed_precondition("cluster ID mismatch"));
        own.other_cluster(MemberId(0xabc), refusal.metadata())
    };
    assert_eq!(refused(2, 0xabc), Some(ClusterId(2)));
    assert_eq!(refused(1, 0xabc), None, "it refuses for another reason");
    assert_eq!(refused(2, 9), None, "somebody else listens there");
    assert_eq!(own.other_cluster(MemberId(0xabc), &MetadataMap::new()), None);
}

#[test]
fn who_was_removed_is_told_so_and_who_is_not_known_yet_may_have_been_added() {
    let own = handshake(1, 7);
    let call = || handshake(1, 0xabc).call(MemberId(7), ());
    assert!(own.caller(call().metadata()).is_ok(), "the cluster is being founded");
    let members = [7, 0xabc].map(|id| (MemberId(id), ("m".to_owned(), vec![]))).into();
    own.machine.apply_of_test(EntryKind::Cluster(ClusterEntry::Bootstrap { id: ClusterId(1), members }));
    own.machine.follow_of_test(&Membership { voters: [MemberId(7)].into(), peer_urls: [(MemberId(7), vec![])].into() });
    let status = own.caller(call().metadata()).unwrap_err();
    let text = "etcdserver: the member has been permanently removed from the cluster";
    assert_eq!((status.code(), status.message()), (Code::DataLoss, text));
    let status = own.answerer(MemberId(0xabc), handshake(1, 0xabc).answer(()).metadata()).unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, text));
    assert!(own.caller(handshake(1, 0xdef).call(MemberId(7), ()).metadata()).is_ok(), "it was added since");
}

/// A member that is told to have lost its data ends: what it said before it had any must not be taken for that.
#[test]
fn who_has_lost_its_data_is_told_from_who_was_heard_late() {
    let own = handshake(1, 7);
    let members = [(MemberId(0xabc), ("m2".to_owned(), vec![]))].into();
    let published = ClusterEntry::Publish {
        member: MemberId(0xabc),
        starts: Starts(2),
        start_id: StartId::read(8),
        incarnation: Incarnation::read(5),
        attributes: Attributes::default(),
    };
    for entry in [ClusterEntry::Bootstrap { id: ClusterId(1), members }, published] {
        own.machine.apply_of_test(EntryKind::Cluster(entry));
    }
    let late = Some((Code::Unavailable, "on its way for too long"));
    let lost = |text| Some((Code::DataLoss, text));
    // Each start with its id.
    for (incarnation, (starts, start_id), (published, published_id), is_empty, refused) in [
        (5, (2, 8), (2, 8), false, None),
        (5, (2, 8), (1, 7), false, late),
        (5, (2, 8), (0, 0), true, late), // said while it was new
        (5, (2, 8), (2, 8), true, lost("no log any more")),
        (5, (3, 9), (2, 8), true, lost("no log any more")),
        (5, (3, 9), (2, 8), false, None),
        (5, (3, 9), (3, 9), false, None),
        (5, (3, 9), (1, 7), false, lost("an older copy")),
        (5, (1, 7), (1, 7), false, lost("an older copy")),
        (5, (2, 6), (1, 7), false, lost("an older copy")), // the copy counts the same start once more
        (5, (2, 6), (2, 6), false, lost("an older copy")), // has published it to those that do not know
        (5, (3, 9), (2, 6), false, lost("an older copy")), // and has started since
        (5, (2, 0), (1, 7), false, lost("an older copy")),
        (6, (2, 8), (0, 0), true, lost("it has another one")),
        (0, (2, 8), (0, 0), true, lost("it has another one")),
    ] {
        let said = wire::Handshake {
            protocol: 1,
            cluster: 1,
            member: 0xabc,
            release: "3.6.0".into(),
            starts,
            to: 7,
            is_empty,
            incarnation,
            published,
            start_id,
            published_id,
            ..wire::Handshake::default()
        };
        let mut metadata = MetadataMap::new();
        insert(&mut metadata, &said);
        let status = own.caller(&metadata).err();
        let fits = match (&status, refused) {
            (None, None) => true,
            (Some(status), Some((code, text))) => status.code() == code && status.message().contains(text),
            _ => false,
        };
        assert!(fits, "{said:?}: {status:?}");
    }
}

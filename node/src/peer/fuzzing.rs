//! What another member says of itself, for a fuzzer that does not know the message.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use proto::{ClusterId, MemberId, Release};
use tonic::metadata::MetadataMap;

use super::{
    Handshake,
    handshake::insert_bytes,
    wire::{self, Frame},
};
use crate::{
    cluster::member::Starts,
    features::FEATURES,
    identity::Identity,
    machine::{Machine, Proposals},
};

const CLUSTER: ClusterId = ClusterId(1);
const MEMBER: MemberId = MemberId(7);
const STARTS: Starts = Starts(3);

fn own() -> Handshake {
    let release = Release::new(3, 6, 0);
    let machine = Machine::new(release.clone(), FEATURES, Proposals::new(MEMBER, STARTS));
    Handshake::new(Arc::new(Identity::of_none(CLUSTER, MEMBER, release, STARTS)), machine, false)
}

/// Reads bytes as the message whose number comes first: whoever is let in has named this member and its cluster.
pub fn fuzz(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let bytes = Bytes::copy_from_slice(bytes);
    match kind {
        0 => {
            let mut metadata = MetadataMap::new();
            insert_bytes(&mut metadata, bytes.clone());
            if let Ok(remote) = own().caller(&metadata) {
                let said = wire::Handshake::decode(bytes).unwrap_or_default();
                assert_eq!((said.cluster, said.to, said.member), (CLUSTER.0, MEMBER.0, remote.member.0));
            }
        }
        1 => drop(wire::Question::decode(bytes)),
        2 => drop(wire::Proposals::decode(bytes)),
        3 => drop(Frame::of(bytes).carried::<wire::HashOf>()),
        4 => drop(Frame::of(bytes).carried::<wire::Proposed>()),
        _ => {}
    }
}

/// Bytes to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let handshake = wire::Handshake {
        protocol: 1,
        cluster: CLUSTER.0,
        member: 9,
        release: "3.7.0".into(),
        starts: 300,
        to: MEMBER.0,
        is_empty: true,
        incarnation: 5,
        published: 2,
        start_id: 6,
        published_id: 7,
        lowest_protocol: 1,
        highest_protocol: 2,
        cluster_version: "3.6".into(),
        join_policy: wire::JoinPolicy::Strict.into(),
        waits: true,
        lowered_offline: 1,
    };
    let frame = Frame::of(Bytes::from_static(b"what is said"));
    let question = wire::Question { what: Some(wire::question::What::Vote(frame.clone())) };
    let messages = [
        handshake.encode_to_vec(),
        question.encode_to_vec(),
        wire::Proposals { proposals: vec![frame] }.encode_to_vec(),
        wire::HashOf { hash: 1, compacted: 2, revision: 3 }.encode_to_vec(),
        wire::Proposed { again: vec![1, 300] }.encode_to_vec(),
    ];
    (0..).zip(messages).map(|(kind, message)| [&[kind], &message[..]].concat()).collect()
}

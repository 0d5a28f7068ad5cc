//! What members say to each other.

/// Behind a byte that says which message it is: raft's own, or one of those around them.
pub fn decode(bytes: &[u8]) {
    match bytes.split_first() {
        Some((&kind, rest)) if kind >= KINDS => node::peer::fuzz(&[&[kind - KINDS], rest].concat()),
        _ => consensus::fuzz(bytes),
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let messages = crate::delimited(include_bytes!("../../../node/consensus/tests/golden/messages-1.bin"));
    let of_every_kind =
        messages.iter().flat_map(|message| (0..KINDS).map(move |kind| [&[kind], &message[..]].concat()));
    let around = node::peer::seeds().into_iter().map(|seed| [&[seed[0] + KINDS], &seed[1..]].concat());
    of_every_kind.chain(around).collect()
}

/// Of raft's.
const KINDS: u8 = 9;

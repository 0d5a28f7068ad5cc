//! What members say to each other.

pub fn decode(bytes: &[u8]) {
    // Their messages are known to raft's crate alone, which shows them to a fuzzer.
    #[cfg(fuzzing)]
    consensus::fuzz(bytes);
    let _ = bytes;
}

/// Behind a byte that says which message it is.
pub fn seeds() -> Vec<Vec<u8>> {
    let messages = crate::delimited(include_bytes!("../../consensus/tests/golden/messages-1.bin"));
    let of_every_kind =
        messages.iter().flat_map(|message| (0..KINDS).map(move |kind| [&[kind], &message[..]].concat()));
    of_every_kind.collect()
}

const KINDS: u8 = 9;

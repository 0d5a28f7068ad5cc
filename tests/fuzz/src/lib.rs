//! Every decoder that is given what others have written. Of the node: the log and the snapshot on its disk, what other members
//! say, and what clients ask. Of the agent: a member's database, its files, its settings, playbooks, and events. Whatever the bytes are, the
//! answer is a value or an error; and what the node has read is the same when it is written and read again.
//!
//! `scripts/fuzz` has libFuzzer look for bytes that reach new code; the tests here give each decoder its seeds, changed a little.

#![allow(clippy::unwrap_used, reason = "a tool of tests")]

use std::io::Read as _;

use flate2::read::GzDecoder;

mod connection;
mod database;
mod entry;
mod log;
mod member_files;
mod peer;
mod request;
mod snapshot;
mod text;

/// A decoder, and bytes to begin with.
pub struct Decoder {
    pub name: &'static str,
    pub decode: fn(&[u8]),
    pub seeds: fn() -> Vec<Vec<u8>>,
}

pub const DECODERS: [Decoder; 11] = [
    Decoder { name: "connection", decode: connection::decode, seeds: connection::seeds },
    Decoder { name: "database", decode: database::decode, seeds: database::seeds },
    Decoder { name: "entry", decode: entry::decode, seeds: entry::seeds },
    Decoder { name: "events", decode: text::events, seeds: text::events_seeds },
    Decoder { name: "log", decode: log::decode, seeds: log::seeds },
    Decoder { name: "member-files", decode: member_files::decode, seeds: member_files::seeds },
    Decoder { name: "peer", decode: peer::decode, seeds: peer::seeds },
    Decoder { name: "playbook", decode: text::playbook, seeds: text::playbook_seeds },
    Decoder { name: "request", decode: request::decode, seeds: request::seeds },
    Decoder { name: "settings", decode: text::settings, seeds: text::settings_seeds },
    Decoder { name: "snapshot", decode: snapshot::decode, seeds: snapshot::seeds },
];

/// What a test of the agent keeps packed.
fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Messages one after the other, each behind its length.
fn delimited(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Ok(length) = prost::decode_length_delimiter(&mut bytes) {
        let (message, rest) = bytes.split_at(length.min(bytes.len()));
        messages.push(message.to_vec());
        bytes = rest;
        if bytes.is_empty() {
            break;
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At most so many changes of each decoder's seeds.
    const CHANGES: usize = 4000;

    #[test]
    fn a_seed_that_is_changed_a_little_is_read_or_refused() {
        for Decoder { name, decode, seeds } in DECODERS {
            let seeds = seeds();
            let bytes: usize = seeds.iter().map(Vec::len).sum();
            assert!(bytes > 0, "{name} has no seed");
            let step = (2 * bytes).div_ceil(CHANGES);
            let mut changes = 0;
            for seed in &seeds {
                decode(seed);
                for at in (changes % step..seed.len()).step_by(step) {
                    decode(&seed[..at]);
                    let mut flipped = seed.clone();
                    flipped[at] ^= 1 << (changes % 8);
                    decode(&flipped);
                    changes += 1;
                }
            }
            println!("counted: {name}: {} seeds of {bytes} bytes, {changes} changes", seeds.len());
        }
    }
}

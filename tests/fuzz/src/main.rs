//! libFuzzer's program for one decoder, whose name is in `BATON_DECODER`.

#![no_main]
#![allow(unsafe_code, clippy::panic, reason = "libFuzzer calls it by its name; a tool of tests")]

use std::{env, sync::OnceLock};

use fuzz::DECODERS;

static DECODE: OnceLock<fn(&[u8])> = OnceLock::new();

fn named() -> fn(&[u8]) {
    let name = env::var("BATON_DECODER").unwrap_or_default();
    let found = DECODERS.into_iter().find(|decoder| decoder.name == name);
    found.unwrap_or_else(|| panic!("BATON_DECODER is `{name}`, which is no decoder")).decode
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| DECODE.get_or_init(named)(bytes));

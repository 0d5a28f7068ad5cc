//! The messages of `proto/state.proto`: what a stored state is made of.

#![allow(missing_docs, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/baton.state.rs"));

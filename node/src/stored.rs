//! The messages of `proto/*.proto`: what a stored state and an entry are made of.

#![allow(clippy::all)]

include!(concat!(env!("OUT_DIR"), "/baton.state.rs"));

/// What members hold in common about the cluster.
pub mod cluster {
    include!(concat!(env!("OUT_DIR"), "/baton.cluster.rs"));
}

pub mod entry {
    include!(concat!(env!("OUT_DIR"), "/baton.entry.rs"));
}

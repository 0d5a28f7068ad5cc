//! The protocol between hosts: what they share and in which order it changes.

pub mod host_id;

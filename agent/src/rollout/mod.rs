//! The protocol between hosts: what they share, and the machine that each of them runs.

pub mod act;
pub mod agent;
mod hex;
pub mod host_id;
pub mod keys;
mod mend;
pub mod rules;
mod step;
pub mod symmetry;
pub mod txn;

//! What the operator wrote.

pub mod cluster;

//! Cluster feature gates (KEP-4647) under a rollout of the bundled node: waited for, shown, and told of where they stay
//! other than expected.

#![allow(clippy::panic, reason = "a test that cannot go on fails")]

mod command;
mod expected;
mod flags;
mod nodes;

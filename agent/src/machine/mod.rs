//! The rollout machine: pure, and whole. What is asked of the world is an act, what it answers an event.
//!
//! `agent.rs` holds the machine's state and the looks, `deciding.rs` what follows from one; `txn_outcome.rs` has what comes of a Txn, `step/` carries out the
//! planner's actions, `repair.rs` starts over after a crash. Source: agent/PROTOCOL.md.

pub mod act;
pub mod agent;
mod deciding;
#[cfg(test)]
mod driven;
mod membership;
mod registering;
mod repair;
mod step;
mod txn_outcome;

//! Real clusters on this machine: members, agents, faults, load, and what clients saw of it.
//!
//! What `agent matrix` stands on, and Baton's own tests. Nothing here knows how the agent is made. It starts real members
//! on real ports, hands playbooks to the real agent, and judges by what clients saw and by what an observer outside saw.

pub mod agent;
pub mod certificates;
pub mod chance;
pub mod client;
pub mod cluster;
pub mod ended;
pub mod events;
pub mod fault;
pub mod folder;
pub mod history;
pub mod member;
pub mod metrics;
pub mod mounted;
pub mod network;
pub mod newcomer;
pub mod observer;
pub mod playbook;
pub mod ports;
pub mod process;
pub mod raft_status;
pub mod sick;
pub mod syncs;
pub mod system;
mod turns;
pub mod wait;
pub mod watcher;
pub mod witness;
pub mod workload;

/// Any failure of the lab itself. Each says what was tried; nobody tells them apart in code.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

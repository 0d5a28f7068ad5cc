//! Drives the real binaries from outside: clusters, faults, workload, histories.
//!
//! Nothing here knows how the agent is made. It starts real members on real ports, hands playbooks to the
//! real agent, and judges by what clients saw and by what an observer outside saw.

pub mod agent;
pub mod balancer;
pub mod brake;
pub mod case;
pub mod certificates;
pub mod chance;
pub mod client;
pub mod cluster;
pub mod command;
pub mod ended;
pub mod events;
pub mod fault;
pub mod history;
pub mod member;
pub mod mounted;
pub mod network;
pub mod observer;
pub mod playbook;
pub mod ports;
pub mod process;
pub mod rollout;
pub mod sick;
pub mod skip;
pub mod spread;
pub mod standing;
pub mod system;
mod turns;
pub mod wait;
pub mod watcher;
pub mod web;
pub mod witness;
pub mod workload;

/// Any failure of the harness itself. Each says what was tried; nobody tells them apart in code.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

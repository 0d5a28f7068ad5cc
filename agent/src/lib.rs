//! Baton's agent: observe, plan, execute. ARCHITECTURE.md is the map.

pub mod boot_clock;
pub mod calendar;
pub mod cli;
pub mod command;
pub mod event;
pub mod execute;
pub mod guarded;
pub mod hazards;
pub mod host;
pub mod journal;
pub mod keys;
pub mod machine;
pub mod observe;
pub mod plan;
pub mod playbook;
pub mod regular_file;
pub mod report;
pub mod sha256;
pub mod store;
pub mod unknown;
pub mod visible;
pub mod words;

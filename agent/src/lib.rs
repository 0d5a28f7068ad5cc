//! Baton's agent: observe, plan, execute. ARCHITECTURE.md is the map.

pub mod boot_clock;
pub mod observe;
pub mod playbook;
pub mod rollout;

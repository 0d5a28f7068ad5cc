//! Baton's agent: observe, plan, execute. ARCHITECTURE.md is the map.

pub mod observe;
pub mod playbook;

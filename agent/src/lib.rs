//! Baton's agent: observe, plan, execute. ARCHITECTURE.md is the map.

pub mod host;
pub mod journal;
pub mod observe;
pub mod rollout;

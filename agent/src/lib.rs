//! Baton's agent: observe, plan, execute. ARCHITECTURE.md is the map.

pub mod journal;
pub mod observe;
pub mod plan;
pub mod rollout;

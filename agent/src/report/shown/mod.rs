//! What is shown because it was asked for: a status, a forecast, keys, roles, fields.

pub mod agents;
pub mod changes;
pub mod check;
pub mod cluster;
pub mod downgrade;
pub mod explain;
pub mod features;
pub mod forecast;
pub mod gates;
pub mod grants;
pub mod hazards;
pub mod hosts;
pub mod keys;
pub mod next;
pub mod roles;
pub mod status;
pub(crate) mod step_column;

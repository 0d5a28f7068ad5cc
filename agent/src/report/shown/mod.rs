//! What is shown because it was asked for: a status, a forecast, keys, roles, fields.

pub mod explain;
pub mod forecast;
pub mod gates;
pub mod grants;
pub mod keys;
pub mod lowering;
pub mod next;
pub mod roles;
pub mod standing;
pub mod status;

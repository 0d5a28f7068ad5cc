//! What a run says.
pub mod happening;

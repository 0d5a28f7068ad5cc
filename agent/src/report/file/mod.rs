//! What is written for programs: the result object and the events file.

pub mod events;
pub mod json;

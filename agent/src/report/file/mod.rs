//! What is written for programs: the result object, the events file, metrics.

pub mod events;
pub mod json;
pub mod metrics;
pub mod metrics_file;

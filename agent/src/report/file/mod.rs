//! What is written for programs: the result object, the events file, metrics.

mod event_line;
pub mod events;
pub mod json;
pub mod metrics;
pub mod metrics_file;
mod seen;

pub use event_line::FORMAT;

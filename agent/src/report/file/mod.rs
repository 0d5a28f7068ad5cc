//! What is written for programs: the result object, the events file, metrics; and the report of a run, as a file.

mod event_line;
pub mod events;
pub mod json;
pub mod metrics;
pub mod metrics_file;
pub mod report_file;
mod seen;

pub use event_line::FORMAT;

//! What a person, a script and a log get to know: sentences, exit codes, the result, events, the display.
//!
//! `stop.rs` alone says how an end is called, which exit code it has and what to type next. Nothing here asks
//! the cluster or decides anything of a rollout, and no failed write here ever changes a run.

pub mod forecast;
pub mod happening;
pub mod json;
pub mod names;
pub mod reason;
pub mod standing;
pub mod status;
pub mod stop;
pub mod text;
pub mod trouble;
pub mod wait;

#[cfg(test)]
mod stop_test;

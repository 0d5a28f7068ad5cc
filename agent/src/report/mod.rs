//! What a person, a script and a log get to know: sentences, exit codes, the result, events, the display.
//!
//! ```text
//! happening -> board -> display, lines, result        happening -> events file
//! ending    -> stop  -> text, json, exit code
//! ```
//! `stop.rs` alone says how an end is called, which exit code it has and what to type next. Nothing here asks
//! the cluster or decides anything of a rollout, and no failed write here ever changes a run.

pub mod abandoned;
pub mod board;
mod change;
pub mod display;
pub mod events;
pub mod explain;
pub mod forecast;
pub mod gates;
pub mod grants;
pub mod happening;
mod hazard;
pub mod json;
pub mod keys;
pub mod lowering;
pub mod names;
pub mod next;
mod pipe;
pub mod reason;
pub mod refused;
pub mod reporter;
pub mod roles;
pub mod settling;
pub mod standing;
pub mod status;
pub mod stop;
pub mod text;
pub mod trouble;
pub mod wait;
pub mod warned;

#[cfg(test)]
mod reporter_test;
#[cfg(test)]
mod stop_test;

pub use happening::{Decision, Happening};
pub use reporter::Reporter;

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For a person.
    Text,
    /// One JSON object.
    Json,
}

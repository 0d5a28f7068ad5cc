//! What a person, a script and a log get to know: sentences, exit codes, the result, events, the display.
//!
//! ```text
//! event  -> live/progress -> display, lines, result        event -> file/events -> page
//! ending -> stop       -> text, json, exit code
//! ```
//! `stop/mod.rs` alone says how an end is called, which exit code it has and what to type next. Nothing here asks
//! the cluster or decides anything of a rollout, and no failed write here ever changes a run.

pub mod available;
mod change;
pub mod differing;
pub mod file;
mod lasted;
pub mod live;
pub mod names;
pub mod page;
pub mod settling;
pub mod shown;
pub mod stop;
pub mod wait;

pub use live::reporter::Reporter;

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For a person.
    Text,
    /// One JSON object.
    Json,
}

/// How a result is printed, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// For a person
    Text,
    /// One JSON object
    Json,
    /// Metrics, in Prometheus' text format; of status alone
    Prometheus,
    /// A list in the format of OSV; of hazards alone
    Osv,
}

impl Form {
    /// Metrics are a page of text; what goes wrong is told a person.
    pub fn output(self) -> Output {
        match self {
            Self::Json => Output::Json,
            Self::Text | Self::Prometheus | Self::Osv => Output::Text,
        }
    }
}

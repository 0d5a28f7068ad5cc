//! What is typed to have a page made of what runs have written.

use std::path::PathBuf;

use clap::Args;

/// `agent report`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Report {
    /// Files that agent run --events has written, of one host or of several; - is stdin
    #[arg(value_name = "EVENTS", required = true)]
    pub events: Vec<PathBuf>,
    /// The run whose id begins like this; without it the newest
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// The file to write; stdout without it, or with -
    #[arg(short = 'o', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long, requires = "file")]
    pub force: bool,
}

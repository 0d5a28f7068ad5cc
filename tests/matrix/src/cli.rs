//! The command line, as it is typed.

use std::path::PathBuf;

use agent::cli::Output;
use clap::{Args, Parser};

/// Runs every path, size and fault of a matrix on real members of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(name = "agent-matrix", bin_name = "agent matrix", version, max_term_width = 120)]
pub struct Cli {
    /// What to run.
    #[command(flatten)]
    pub matrix: Matrix,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t = Output::Text, overrides_with = "output")]
    pub output: Output,
    /// What is logged to stderr, as for `tracing`: error, warn, info, debug, agent::observe=debug, …
    #[arg(long, value_name = "FILTER", default_value = "warn", overrides_with = "log")]
    pub log: String,
}

/// What is typed after it.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Matrix {
    /// The matrix, a YAML file
    pub matrix: PathBuf,
    /// Only the plans whose name contains this, such as etcd/3.5.30-3.6.14/3/mixed/7; may be given several times
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// The first seed, instead of the file's
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// How many plans of each cell, instead of the file's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub plans: Option<u64>,
    /// So many plans in all, round the cells, each from the next seed
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with = "plans", value_parser = clap::value_parser!(u64).range(1..))]
    pub sample: Option<u64>,
    /// How many plans run at the same time
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: u16,
    /// Print the plans and run none
    #[arg(long)]
    pub list: bool,
    /// Of one plan only these steps and faults, as the smallest plan that failed names them
    #[arg(long, value_name = "ID,…", value_delimiter = ',', requires = "only")]
    pub keep: Vec<String>,
    /// Do not look for a smaller plan that fails
    #[arg(long)]
    pub no_shrink: bool,
    /// Where releases stay, and the clusters of plans that failed [default: a temporary folder, kept when a plan fails]
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// Write the result as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the result as a page with a grid
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the result as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The agent that is tested [default: the one beside this program, else the one on the PATH]
    #[arg(long, value_name = "FILE", overrides_with = "agent")]
    pub agent: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_again_counts() {
        let typed = |line: &str| Cli::try_parse_from(line.split(' '));
        let cli = typed("agent-matrix --output json --agent a m.yaml --agent b --output text").unwrap();
        assert_eq!((cli.output, cli.matrix.agent), (Output::Text, Some("b".into())));
        assert!(typed("agent-matrix m.yaml --jobs -1").unwrap_err().to_string().contains("-1 is not in 1.."));
    }
}

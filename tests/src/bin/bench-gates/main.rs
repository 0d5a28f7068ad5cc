//! How soon the cluster's gate is decided, and what a change of members costs: `scripts/bench-gates`.
//!
//! Real processes: of the bundled node for what etcd has not, of both systems in turns where etcd has it, too. Figures are medians
//! with their range; what counts are the ratios within one run.

mod changes;
mod check;
mod learner;
mod newcomer;
mod resize;
mod settle;
mod upgrade;

use std::{process::ExitCode, time::Duration};

use clap::{Parser, ValueEnum};
use tests::{
    Error,
    command::end_of,
    side_by_side::{in_turns, print, systems},
    spread::spread,
    system::{Build, System},
};

/// Measures the cluster feature gate of the bundled node, and changes of members beside etcd.
///
/// settle: from the start of a cluster's last member until each member has a cluster version, and a decided gate; and the same of one
/// member that is restarted with another flag. Goal: 50 ms. upgrade: how long the gate is undecided while every member runs, as the
/// last one of a rolling upgrade comes up. Goal: 30 ms. check: one look at the gate where an entry is applied. Goal: 10 ns. learner:
/// from the start of a learner until it is promoted. Goal: 0.7 of etcd's time. changes: the longest gap between two writes while a
/// member is added, promoted and removed. Goal: etcd's. newcomer: the slowest put while a learner is sent a snapshot, of the slowest
/// before. Goal: 1.5.
#[derive(Parser)]
#[command(name = "bench-gates")]
struct Cli {
    /// What is measured, with commas between [default: all of it].
    #[arg(value_enum, value_delimiter = ',')]
    parts: Vec<Part>,
    /// Only this system, where both are measured.
    #[arg(long, value_enum)]
    system: Option<System>,
    /// How many members, for the gate.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [3, 5, 7])]
    sizes: Vec<usize>,
    /// Measurements of each kind.
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    /// What a learner that is promoted has to take in.
    #[arg(long, value_name = "MB", default_value_t = 100)]
    learner_mb: u64,
    /// What a newcomer has to take in while others write.
    #[arg(long, value_name = "MB", default_value_t = 300)]
    newcomer_mb: u64,
    /// Seconds for what a newcomer is compared with.
    #[arg(long, value_name = "S", default_value_t = 5)]
    seconds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Settle,
    Upgrade,
    Check,
    Learner,
    Changes,
    Newcomer,
}

/// A row of the table of gates, and its figures for each number of members.
type Row = (&'static str, Vec<Vec<f64>>);

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    end_of(bench(&cli)).await
}

async fn bench(cli: &Cli) -> Result<ExitCode, Error> {
    let is_wanted = |part: Part| cli.parts.is_empty() || cli.parts.contains(&part);
    let mut rows = Vec::new();
    if is_wanted(Part::Settle) {
        rows.extend(settle::rows(&cli.sizes, cli.runs).await?);
    }
    if is_wanted(Part::Upgrade) {
        rows.push(upgrade::row(&cli.sizes, cli.runs).await?);
    }
    if !rows.is_empty() {
        print_by_size(&cli.sizes, &rows);
    }
    if is_wanted(Part::Check) {
        println!("{}\n", check::figure()?);
    }
    if ![Part::Learner, Part::Changes, Part::Newcomer].into_iter().any(is_wanted) {
        return Ok(ExitCode::SUCCESS);
    }
    let mut all = systems(cli.system, "3.6")?;
    in_turns(&mut all, cli.runs, async |build| beside(cli, build).await).await?;
    print(&all);
    Ok(ExitCode::SUCCESS)
}

/// What both systems have.
async fn beside(cli: &Cli, build: &Build) -> Result<Vec<(String, f64)>, Error> {
    let is_wanted = |part: Part| cli.parts.is_empty() || cli.parts.contains(&part);
    let mut rows = Vec::new();
    if is_wanted(Part::Learner) {
        rows.extend(learner::rows(build, cli.learner_mb).await?);
    }
    if is_wanted(Part::Changes) {
        rows.extend(changes::rows(build).await?);
    }
    if is_wanted(Part::Newcomer) {
        rows.extend(newcomer::rows(build, cli.newcomer_mb, Duration::from_secs(cli.seconds)).await?);
    }
    Ok(rows)
}

fn print_by_size(sizes: &[usize], rows: &[Row]) {
    let heads: Vec<_> = sizes.iter().map(|size| format!("{size} members")).collect();
    println!("| | {} |\n|---{}|", heads.join(" | "), "|---".repeat(heads.len()));
    for (name, figures) in rows {
        let cells: Vec<_> = figures.iter().map(|figures| spread(figures.clone())).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
}

//! How long one put takes while a member is busy with much: `scripts/bench-stalls`.
//!
//! A cluster with many keys, and one client that puts a small key a hundred times a second at the leader. What counts is its slowest
//! put while something large goes on, beside its slowest one without, in one run on the same cores; fsync is on.

mod busy;

use std::{process::ExitCode, time::Duration};

use clap::Parser;
use tests::{
    Error,
    cluster::{Cluster, Spec},
    command::end_of,
    much, probe, releases,
    spread::spread,
    system::{Build, System},
};

/// Keeps members of the bundled node and of real etcd busy, and says what a client waits for meanwhile.
#[derive(Parser)]
#[command(name = "bench-stalls")]
struct Cli {
    /// Only this system.
    #[arg(long, value_enum)]
    system: Option<System>,
    /// Keys of 16 bytes, with 8 bytes each.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    keys: u64,
    /// Seconds for each part.
    #[arg(long, value_name = "S", default_value_t = 10)]
    seconds: u64,
    /// Fresh clusters of each system.
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
}

/// A row of the table: what is told, and its figure of each run.
type Rows = Vec<(&'static str, Vec<f64>)>;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    end_of(bench(&cli)).await
}

async fn bench(cli: &Cli) -> Result<ExitCode, Error> {
    let mut all: Vec<(Build, Rows)> = Vec::new();
    for system in System::ALL.into_iter().filter(|system| cli.system.is_none_or(|wanted| wanted == *system)) {
        match releases::get(system, "3.6") {
            Ok(build) => all.push((build, Rows::new())),
            Err(error) if cli.system.is_none() && system == System::Etcd => println!("etcd is left out: {error}"),
            Err(error) => return Err(error),
        }
    }
    for run in 1..=cli.runs {
        for (build, rows) in &mut all {
            for (at, (name, figure)) in measure(cli, build).await?.into_iter().enumerate() {
                match rows.get_mut(at) {
                    Some((_, figures)) => figures.push(figure),
                    None => rows.push((name, vec![figure])),
                }
            }
            eprintln!("run {run} of {}: {build} done", cli.runs);
        }
    }
    println!("3 members, {} keys, {} s a part, {} runs; median (min–max)\n", cli.keys, cli.seconds, cli.runs);
    let heads: Vec<_> = all.iter().map(|(build, _)| build.to_string()).collect();
    println!("| | {} |\n|---{}|", heads.join(" | "), "|---".repeat(all.len()));
    let Some((_, first)) = all.first() else { return Ok(ExitCode::SUCCESS) };
    for (at, (name, _)) in first.iter().enumerate() {
        let cells: Vec<_> = all.iter().map(|(_, rows)| spread(rows[at].1.clone())).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    Ok(ExitCode::SUCCESS)
}

/// All parts on a fresh cluster.
async fn measure(cli: &Cli, build: &Build) -> Result<Vec<(&'static str, f64)>, Error> {
    let flags = vec!["--quota-backend-bytes=8589934592".into()];
    let cluster = Cluster::up(&Spec { flags, ..Spec::new(build.clone()) }).await?;
    let (layout, time) = (&cluster.layout, Duration::from_secs(cli.seconds));
    much::fill(layout, cli.keys, 8).await?;
    much::quiet(layout).await;
    let mut rows = Vec::new();
    let alone = probe::slowest_ms(layout, time, busy::nothing()).await?;
    rows.push(("slowest put, nothing else, ms", alone));
    let hashes = probe::slowest_ms(layout, time, busy::hashes(layout, 8).await?).await?;
    rows.push(("the same, eight HashKV at once at the leader", hashes));
    much::fill(layout, cli.keys / 2, 8).await?;
    much::quiet(layout).await;
    let compaction = probe::slowest_ms(layout, time, busy::compaction(layout).await?).await?;
    rows.push(("the same, a compaction of half as many changes as there are keys", compaction));
    much::quiet(layout).await;
    let before = busy::resident_mb(layout)?;
    let snapshots = busy::until_snapshots(layout, 2).await?;
    rows.push(("slowest put beside puts of 16 KiB, no snapshot is written, ms", snapshots.without_ms));
    rows.push(("the same, while one is written", snapshots.with_ms));
    rows.push((
        "resident at most, of what it was before and what was written",
        snapshots.most_mb / (before + snapshots.written_mb),
    ));
    let alone = busy::writes_a_second(layout, time).await?;
    let _watches = much::watches(layout, 10_000).await?;
    let watched = busy::writes_a_second(layout, time).await?;
    rows.push(("writes/s, 64 clients", alone));
    rows.push(("of that, with 10,000 watches that match nothing", watched / alone));
    Ok(rows)
}

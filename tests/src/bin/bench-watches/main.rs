//! How late a watch hears of a change while others read much from the same member: `scripts/bench-watches`.
//!
//! One member, readers who ask for all keys again and again over one connection, and a client that puts a small key now and then over a
//! connection of its own. Two watch that key: one on the connection of the readers, one on another. What counts is how long after
//! the put was sent they hear of it, beside etcd's in the same run. Source: etcd, tests/e2e/watch_test.go, `TestWatchDelayForEvent`.

mod measure;
mod raw;

use std::{process::ExitCode, time::Duration};

use clap::Parser;
use tests::{
    Error,
    cluster::{Cluster, Spec},
    command::end_of,
    much,
    side_by_side::{in_turns, print, systems},
    system::{Build, System},
};

use crate::measure::Reading;

/// Lets clients read much from a member of each system, and says how long a watch waits meanwhile.
#[derive(Parser)]
#[command(name = "bench-watches")]
struct Cli {
    /// Only this system.
    #[arg(long, value_enum)]
    system: Option<System>,
    /// Readers at once, on one connection.
    #[arg(long, value_name = "N", default_value_t = 10)]
    readers: usize,
    /// Bytes of all keys together, in millions.
    #[arg(long, value_name = "N", default_value_t = 5)]
    megabytes: usize,
    /// As many keys, with commas between: few long values, or many short ones.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [100, 5000])]
    keys: Vec<u64>,
    /// Seconds for each.
    #[arg(long, value_name = "S", default_value_t = 5)]
    seconds: u64,
    /// Fresh clusters of each system.
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    end_of(bench(&cli)).await
}

async fn bench(cli: &Cli) -> Result<ExitCode, Error> {
    let mut all = systems(cli.system, "3.6")?;
    in_turns(&mut all, cli.runs, async |build| measure(cli, build).await).await?;
    println!(
        "1 member, {} readers of {} MB, {} s a part, {} runs; median (min–max)\n",
        cli.readers, cli.megabytes, cli.seconds, cli.runs
    );
    print(&all);
    Ok(ExitCode::SUCCESS)
}

async fn measure(cli: &Cli, build: &Build) -> Result<Vec<(String, f64)>, Error> {
    let mut rows = Vec::new();
    for keys in &cli.keys {
        let flags = vec!["--quota-backend-bytes=8589934592".into()];
        let cluster = Cluster::up(&Spec { size: 1, flags, ..Spec::new(build.clone()) }).await?;
        let bytes = cli.megabytes * 1_000_000 / usize::try_from(*keys)?;
        much::fill(&cluster.layout, *keys, bytes).await?;
        let alone = Reading { readers: 0, time: Duration::from_secs(1) }.run(&cluster.layout).await?;
        rows.push((format!("{keys} keys, nobody reads: p99 of a watch, ms"), alone.beside.p99_ms()));
        let reading = Reading { readers: cli.readers, time: Duration::from_secs(cli.seconds) };
        let heard = reading.run(&cluster.layout).await?;
        rows.extend([
            (format!("{keys} keys: read, MB/s"), heard.read_bytes as f64 / 1e6 / cli.seconds as f64),
            (format!("{keys} keys: slowest put, ms"), heard.puts.longest_ms()),
            (format!("{keys} keys: watch on another connection, p99, ms"), heard.beside.p99_ms()),
            (format!("{keys} keys: the same, longest"), heard.beside.longest_ms()),
            (format!("{keys} keys: watch on the connection of the readers, p99, ms"), heard.among.p99_ms()),
            (format!("{keys} keys: the same, longest"), heard.among.longest_ms()),
        ]);
    }
    Ok(rows)
}

//! What the bundled node and real etcd carry: `scripts/bench-load`.
//!
//! One client program for both, on fresh clusters of three that run one after the other on the same cores; fsync is
//! on. Figures are medians with their range; what counts are the ratios within one run.

mod client;
mod fan_out;
mod life;
mod load;

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

use crate::load::{Kind, Load};

/// What a member holds and how soon it is there again is measured after so many, the same number for both systems.
const WRITES: u64 = 100_000;

/// Loads clusters of the bundled node and of real etcd with the same client, in turns.
#[derive(Parser)]
#[command(name = "bench-load")]
struct Cli {
    /// Only this system.
    #[arg(long, value_enum)]
    system: Option<System>,
    /// Of both systems: the node's release, and etcd's newest patch that Baton is tested with.
    #[arg(long, value_name = "V", default_value = "3.6")]
    release: String,
    /// Fresh clusters of each system.
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    /// Seconds for each cell.
    #[arg(long, value_name = "S", default_value_t = 3)]
    seconds: u64,
    /// How many clients at once, with commas between.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 64, 256])]
    clients: Vec<usize>,
    /// Bytes of a value.
    #[arg(long, value_name = "N", default_value_t = 256)]
    bytes: usize,
    /// The node's leader answers reads by its lease.
    #[arg(long)]
    lease: bool,
    /// Then clusters with so many keys: what a member holds in memory, and how soon it is there again.
    #[arg(long, value_name = "N", default_value_t = 0)]
    keys: u64,
    /// Then so many watches of one key that is written again and again.
    #[arg(long, value_name = "N", default_value_t = 0)]
    watches: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    end_of(bench(&cli)).await
}

async fn bench(cli: &Cli) -> Result<ExitCode, Error> {
    let mut all = systems(cli.system, &cli.release)?;
    let measured = async |build: &Build| Ok(names(cli).into_iter().zip(measure(cli, build).await?).collect());
    in_turns(&mut all, cli.runs, measured).await?;
    println!("3 members, {} bytes, {} s a cell, {} runs; median (min–max)\n", cli.bytes, cli.seconds, cli.runs);
    print(&all);
    Ok(ExitCode::SUCCESS)
}

fn names(cli: &Cli) -> Vec<String> {
    let loads = loads(cli).flat_map(|load| {
        let (kind, clients) = (load.kind, many(load.clients));
        [
            format!("{kind}/s, {clients}"),
            format!("{kind}, {clients}: p99, ms"),
            format!("{kind}, {clients}: processor time of one, all members, µs"),
        ]
    });
    let first = std::iter::once("start to healthy, nothing written, ms".into());
    let last = [format!("resident after {WRITES} writes, MB"), format!("start to healthy after {WRITES} writes, ms")];
    let (keys, watches) = (cli.keys, cli.watches);
    let with_keys = (keys > 0)
        .then(|| [format!("resident with {keys} keys, MB"), format!("start to healthy with {keys} keys, ms")]);
    let watched = (watches > 0).then(|| format!("events/s that {watches} watches of one key get"));
    first.chain(loads).chain(last).chain(with_keys.into_iter().flatten()).chain(watched).collect()
}

fn many(clients: usize) -> String {
    if clients == 1 { "1 client".into() } else { format!("{clients} clients") }
}

fn loads(cli: &Cli) -> impl Iterator<Item = Load> {
    let load = |kind| move |clients: &usize| Load { kind, clients: *clients, bytes: cli.bytes };
    let (writes, reads) = (cli.clients.iter().map(load(Kind::Writes)), cli.clients.iter().map(load(Kind::Reads)));
    writes.chain(reads)
}

async fn measure(cli: &Cli, build: &Build) -> Result<Vec<f64>, Error> {
    let by_lease = (cli.lease && build.system == System::Node).then(|| "--linearizable-read-mode=lease".into());
    let cluster = Cluster::up(&Spec { flags: by_lease.into_iter().collect(), ..Spec::new(build.clone()) }).await?;
    let mut figures = vec![life::start_to_healthy(&cluster.layout).await?];
    for load in loads(cli) {
        let measured = load.run(&cluster.layout, Duration::from_secs(cli.seconds)).await?;
        figures.extend([measured.a_second, measured.p99_ms, measured.processor_us]);
    }
    drop(cluster);
    let cluster = Cluster::up(&Spec::new(build.clone())).await?;
    load::write(&cluster.layout, WRITES, cli.bytes).await?;
    figures.extend([life::resident_mb(&cluster.layout)?, life::start_to_healthy(&cluster.layout).await?]);
    drop(cluster);
    if cli.keys > 0 {
        let cluster = Cluster::up(&Spec::new(build.clone())).await?;
        much::fill(&cluster.layout, cli.keys, cli.bytes).await?;
        let resident = life::resident_mb(&cluster.layout)?;
        figures.extend([resident, life::start_to_healthy(&cluster.layout).await?]);
    }
    if cli.watches > 0 {
        let cluster = Cluster::up(&Spec::new(build.clone())).await?;
        figures.push(fan_out::events_a_second(&cluster.layout, cli.watches, Duration::from_secs(cli.seconds)).await?);
    }
    Ok(figures)
}

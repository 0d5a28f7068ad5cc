//! What a rollout by Baton costs beside the bare shell loop that checks nothing: `scripts/bench-rollout`.
//!
//! Both go over fresh clusters of the same releases under the same load, in turns, leader last with
//! MoveLeader; and so do both systems. Figures are medians with their range; what counts are the ratios
//! within one run.

mod down;
mod resident;
mod rollouts;
mod table;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, error::ErrorKind};
use tests::{
    Error,
    cluster::{Cluster, Spec},
    command::{Wanted, end_of},
    system::{Build, System},
};

use crate::rollouts::{Figures, by_baton, by_the_bare_loop, plan_times};

/// Rolls clusters from one release to another under load, by Baton and by a bare loop, in turns; those of
/// the bundled node and those of real etcd, where etcd can be had. Down a minor there is no bare loop.
#[derive(Parser)]
#[command(name = "bench-rollout")]
struct Cli {
    /// Only this system.
    #[arg(long, value_enum)]
    system: Option<System>,
    /// From 3.6 down to 3.5, of both systems.
    #[arg(long, conflicts_with_all = ["from", "to"])]
    down: bool,
    /// Rollouts of each kind.
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    #[command(flatten)]
    wanted: Wanted,
}

/// The rollouts of one system, as far as they are done.
struct Measured {
    from: Build,
    to: Build,
    bare: Vec<Figures>,
    baton: Vec<Figures>,
    /// How long `agent plan` took, in milliseconds.
    plans: Vec<f64>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut cli = Cli::parse();
    if cli.system.is_none() && (cli.wanted.from.is_some() || cli.wanted.to.is_some()) {
        let why = "--from and --to want a --system, for the two systems have releases of their own";
        Cli::command().error(ErrorKind::MissingRequiredArgument, why).exit();
    }
    if cli.down {
        (cli.wanted.from, cli.wanted.to) = (Some("3.6".into()), Some("3.5".into()));
    }
    end_of(bench(&cli)).await
}

async fn bench(cli: &Cli) -> Result<ExitCode, Error> {
    let mut all = systems(cli)?;
    for run in 1..=cli.runs {
        for measured in &mut all {
            measured.measure(cli.wanted.size).await?;
            eprintln!("run {run} of {}: {} done", cli.runs, measured.from.system);
        }
    }
    println!("{} members, {} rollouts of each kind; median (min–max)\n", cli.wanted.size, cli.runs);
    table::print(&all, cli.wanted.size)?;
    match all.iter().flat_map(Measured::rollouts).all(|figures| figures.lost == 0) {
        true => Ok(ExitCode::SUCCESS),
        false => Err("acknowledged writes were lost".into()),
    }
}

/// What is measured: the system that was asked for; or both, of which etcd may be missing.
fn systems(cli: &Cli) -> Result<Vec<Measured>, Error> {
    let mut all = Vec::new();
    for system in System::ALL.into_iter().filter(|system| cli.system.is_none_or(|wanted| wanted == *system)) {
        match cli.wanted.builds(system) {
            Ok((from, to)) => all.push(Measured::of(from, to)),
            Err(error) if cli.system.is_none() && system == System::Etcd => println!("etcd is left out: {error}"),
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

impl Measured {
    fn of(from: Build, to: Build) -> Self {
        Self { from, to, bare: Vec::new(), baton: Vec::new(), plans: Vec::new() }
    }

    async fn measure(&mut self, size: usize) -> Result<(), Error> {
        let spec = Spec { size, ..Spec::new(self.from.clone()) };
        if self.to.release > self.from.release {
            let cluster = Cluster::up(&spec).await?;
            self.bare.push(by_the_bare_loop(&cluster.layout, &self.to).await?);
        }
        let cluster = Cluster::up(&spec).await?;
        self.plans.extend(plan_times(&cluster.layout, &self.to)?);
        self.baton.push(by_baton(&cluster.layout, &self.to).await?);
        Ok(())
    }

    fn rollouts(&self) -> impl Iterator<Item = &Figures> {
        self.bare.iter().chain(&self.baton)
    }
}

//! What it costs to replace a live member by Baton beside the bare commands of the same run: `scripts/bench-members`.
//!
//! Both replace the same member of fresh clusters that hold as much, under the same load, in turns; and so do both systems.
//! Figures are medians with their range; what counts are the ratios within one run.

mod by_baton;
mod by_hand;
mod figures;
mod scene;
mod table;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use tests::{
    Error,
    command::end_of,
    releases,
    system::{Build, System},
};

use crate::{figures::Figures, scene::Scene};

/// Replaces a member of three under load, by Baton (`kind: Replace`, the agents of both hosts at once) and by the bare commands, in
/// turns; in clusters of the bundled node and of real etcd.
///
/// The bare commands are etcdctl's, each typed again until it is taken: member add --learner, the start, member promote, endpoint health
/// of the newcomer, move-leader where it leads, member remove, the stop. Goals: the longest gap between two writes within 1.2 of theirs, the time within 1.5.
#[derive(Parser)]
#[command(name = "bench-members")]
struct Cli {
    /// Only this system.
    #[arg(long, value_enum)]
    system: Option<System>,
    /// The release, of both systems.
    #[arg(long, value_name = "V", default_value = "3.6")]
    release: String,
    /// Who is replaced.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Who::Follower, Who::Leader])]
    who: Vec<Who>,
    /// Replacements of each kind.
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    /// What the cluster holds.
    #[arg(long, value_name = "MB", default_value_t = 100)]
    megabytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Who {
    Follower,
    Leader,
}

/// The replacements of one kind of member of one system, as far as they are done.
pub struct Measured {
    build: Build,
    who: Who,
    bare: Vec<Figures>,
    baton: Vec<Figures>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    end_of(bench(&cli)).await
}

async fn bench(cli: &Cli) -> Result<ExitCode, Error> {
    // The bundled node comes without an etcdctl.
    let etcdctl = releases::get(System::Etcd, &cli.release)?;
    let mut all = Vec::new();
    for system in System::ALL.into_iter().filter(|system| cli.system.is_none_or(|wanted| wanted == *system)) {
        let build = releases::get(system, &cli.release)?;
        let of = |who: &Who| Measured { build: build.clone(), who: *who, bare: Vec::new(), baton: Vec::new() };
        all.extend(cli.who.iter().map(of));
    }
    for run in 1..=cli.runs {
        for measured in &mut all {
            let scene = Scene::set(&measured.build, measured.who, cli.megabytes).await?;
            measured.bare.push(by_hand::replace(&scene, &etcdctl).await?);
            drop(scene);
            let scene = Scene::set(&measured.build, measured.who, cli.megabytes).await?;
            measured.baton.push(by_baton::replace(&scene).await?);
            eprintln!("run {run} of {}: {} done", cli.runs, measured.name());
        }
    }
    println!("a cluster of {} MB, {} replacements of each kind; median (min–max)\n", cli.megabytes, cli.runs);
    table::print(&all);
    match all.iter().flat_map(|measured| measured.bare.iter().chain(&measured.baton)).all(|one| one.lost == 0) {
        true => Ok(ExitCode::SUCCESS),
        false => Err("acknowledged writes were lost".into()),
    }
}

impl Measured {
    fn name(&self) -> String {
        let who = match self.who {
            Who::Follower => "a follower",
            Who::Leader => "the leader",
        };
        format!("{}, {who}", self.build)
    }
}

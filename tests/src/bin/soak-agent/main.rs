//! Whole rollouts under load whose agents are killed at random: `scripts/soak-agent`.
//!
//! A seed decides cluster, releases and moments (`journey.rs`); what the kernel makes of them is its own. So a seed that
//! fails is tried again by itself, and mostly fails again.

mod figures;
mod fleet;
mod host;
mod journey;
mod rollout;

use std::{process::ExitCode, time::SystemTime};

use clap::Parser;
use tests::{
    Error,
    cluster::{Cluster, Spec},
    command::end_of,
    releases,
    system::System,
};

use crate::{
    figures::Figures,
    fleet::Fleet,
    journey::{HOSTS, journey},
};

/// Upgrades and downgrades clusters under load, over one minor or two, replaces their members, has them grow and shrink, ends their members
/// by guarded commands, and restores them from a backup, with an agent per host, and kills agents with SIGKILL at random: at a sync of their journals, just before or just after it, or at any
/// time. The same command is started again, until so many were killed. After each rollout it must be done; nothing may be lost, no two
/// members may have been down at once, and no key and no process may be left behind.
#[derive(Parser)]
#[command(name = "soak-agent")]
struct Cli {
    /// How many agents to kill.
    #[arg(value_name = "N")]
    kills: usize,
    /// Where chance begins; a rollout that fails names the seed that does the same again [default: the time].
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Only this system.
    #[arg(long, value_enum)]
    system: Option<System>,
    /// How many megabytes each cluster has from the beginning on.
    #[arg(long, value_name = "MB", default_value_t = 0)]
    data: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    end_of(soak(&Cli::parse())).await
}

async fn soak(cli: &Cli) -> Result<ExitCode, Error> {
    tests::agent::executable()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let (mut seed, mut figures) = (cli.seed.unwrap_or(now), Figures::default());
    while figures.kills() < cli.kills {
        travel(seed, cli, &mut figures).await?;
        seed = seed.wrapping_add(1);
    }
    println!("{figures}");
    Ok(ExitCode::SUCCESS)
}

/// One cluster from its first release to its last one. Where a rollout fails its folder is kept.
async fn travel(seed: u64, cli: &Cli, figures: &mut Figures) -> Result<(), Error> {
    let wanted = cli.system;
    let journey = journey(seed, wanted);
    let dir = tempfile::Builder::new().prefix("baton-soak-").tempdir()?;
    let build = releases::get(journey.system, journey.from)?;
    let cluster = Cluster::up(&Spec { size: HOSTS, dir: Some(dir.path().into()), ..Spec::new(build.clone()) }).await?;
    let mut fleet = Fleet::of(cluster.layout.clone(), build);
    fleet.fill(cli.data).await?;
    for leg in &journey.legs {
        for (what, done) in fleet.take(leg).await? {
            match done {
                Ok(rollout) => {
                    fleet.is_filled().await?;
                    println!("seed {seed}  {what}  {rollout}");
                    figures.add(&rollout, leg);
                }
                Err(error) => {
                    let system = wanted.map_or_else(String::new, |system| format!(" --system {system}"));
                    let left = format!("left:  {}, with playbooks, journals and logs", dir.keep().display());
                    let data = if cli.data > 0 { format!(" --data {}", cli.data) } else { String::new() };
                    let next = format!("next:  scripts/soak-agent 1 --seed {seed}{system}{data}");
                    return Err(format!("seed {seed}  {what}  wanted: {leg}: {error}\n{left}\n{next}").into());
                }
            }
        }
    }
    Ok(())
}

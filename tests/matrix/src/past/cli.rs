//! The command line of `scripts/rediscover`, and what it prints.

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use lab::system::{Build, System};

use super::{
    Ground,
    generate::plan,
    hunt::{Bag, Limits, hunt},
    hunted::{HUNTED, Hunted},
    run::{Bench, Builds},
};

/// Runs clusters with a past on releases of etcd that have known bugs, and says which are found again.
///
/// One generator and one set of weights for all: of a bug it is told the releases and the size of the cluster. No agent is in
/// it: members are restarted as a person's script does it, since the agent would refuse most of these ways.
#[derive(Clone, Debug, Parser)]
#[command(name = "rediscover", bin_name = "scripts/rediscover", max_term_width = 120)]
pub struct Cli {
    /// Only these bugs
    #[arg(value_name = "BUG")]
    pub bugs: Vec<String>,
    /// Instead of bugs: plans on these releases; each that fails is told, and the exit code is 1
    #[arg(long, value_name = "V,V,…", value_delimiter = ',', conflicts_with = "bugs")]
    pub sound: Vec<String>,
    /// How long each is hunted
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub minutes: u64,
    /// How many plans run at the same time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: u16,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// At most so many plans of each
    #[arg(long, value_name = "N")]
    pub plans: Option<u64>,
    /// Print the first plans and run none
    #[arg(long)]
    pub list: bool,
    /// Print the releases that are needed and run nothing
    #[arg(long)]
    pub releases: bool,
    /// Keep the clusters of plans that failed below this folder
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// An agent that is asked before each hop whether it would go; it changes nothing
    #[arg(long, value_name = "FILE")]
    pub agent: Option<PathBuf>,
    /// Where each release has a folder with a `bin`; `scripts/rediscover` gives it
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub etcd: Option<PathBuf>,
}

/// How many plans `--list` prints, unless it is told.
const LISTED: u64 = 3;

/// Does what is typed; whether all was found, or nothing failed.
///
/// # Errors
/// What is typed makes no sense, or a release is not there.
pub async fn carry_out(cli: &Cli) -> Result<bool, lab::Error> {
    let grounds = grounds(cli)?;
    if cli.releases {
        let mut all: Vec<_> = grounds.iter().flat_map(|(_, ground)| ground.way.clone()).collect();
        all.sort();
        all.dedup();
        all.iter().for_each(|release| println!("{release}"));
        return Ok(true);
    }
    if cli.list {
        for (hunted, ground) in &grounds {
            println!("# {}", hunted.map_or("no bug known", |hunted| hunted.name));
            (cli.seed..).take(cli.plans.unwrap_or(LISTED) as usize).for_each(|seed| println!("{}", plan(ground, seed)));
        }
        return Ok(true);
    }
    let temporary = tempfile::Builder::new().prefix("baton-rediscover-").tempdir()?;
    let folder = cli.dir.clone().unwrap_or_else(|| temporary.path().into());
    let limits = Limits {
        time: Duration::from_secs(60 * cli.minutes),
        plans: cli.plans.unwrap_or(u64::MAX),
        jobs: cli.jobs.into(),
        seed: cli.seed,
    };
    let mut rows = Vec::new();
    for (hunted, ground) in &grounds {
        let bench = Bench { builds: builds(cli, ground)?, agent: cli.agent.clone() };
        let name = hunted.map_or("sound", |hunted| hunted.name);
        eprintln!("{name}: {ground}");
        let is_it = |plan: &_, failure: &_| hunted.is_some_and(|hunted| hunted.was_found(plan, failure));
        let bag = hunt(ground, &bench, &folder.join(name), &limits, is_it).await;
        rows.push((*hunted, ground.clone(), bag));
    }
    println!("{}", table(&rows));
    if cli.dir.is_none() {
        rows.iter().for_each(|(_, _, bag)| bag.tidy());
    }
    Ok(rows.iter().all(|(hunted, _, bag)| if hunted.is_some() { bag.found.is_some() } else { bag.others.is_empty() }))
}

type Row = (Option<&'static Hunted>, Ground);

fn grounds(cli: &Cli) -> Result<Vec<Row>, lab::Error> {
    if !cli.sound.is_empty() {
        let way = cli.sound.iter().map(|release| release.parse()).collect::<Result<_, _>>()?;
        return Ok(vec![(None, Ground { way, size: 3 })]);
    }
    if let Some(unknown) = cli.bugs.iter().find(|name| !HUNTED.iter().any(|hunted| hunted.name == *name)) {
        let names: Vec<_> = HUNTED.iter().map(|hunted| hunted.name).collect();
        return Err(format!("`{unknown}` is not hunted; there are {}", names.join(", ")).into());
    }
    let is_chosen = |hunted: &&Hunted| cli.bugs.is_empty() || cli.bugs.iter().any(|name| name == hunted.name);
    HUNTED.iter().filter(is_chosen).map(|hunted| Ok((Some(hunted), hunted.ground()?))).collect()
}

fn builds(cli: &Cli, ground: &Ground) -> Result<Builds, lab::Error> {
    let folder = cli.etcd.as_ref().ok_or("--etcd is missing: run scripts/rediscover")?;
    let build = |release: &proto::Release| {
        let build = Build::of(System::Etcd, &folder.join(release.to_string()).join("bin"))?;
        Ok((release.clone(), build))
    };
    ground.way.iter().map(build).collect()
}

/// As the README has it.
fn table(rows: &[(Option<&Hunted>, Ground, Bag)]) -> String {
    let mut text =
        "| bug | on | found | plans | minutes | other failures | not carried out |\n|---|---|---|---|---|---|---|"
            .to_owned();
    for (hunted, ground, bag) in rows {
        let name = hunted.map_or("none is known".into(), |hunted| format!("{}: {}", hunted.name, hunted.what));
        let found = match &bag.found {
            Some((plan, failure)) => format!("seed {}, step {}: {:?}", plan.seed, failure.step, failure.broken.symptom),
            None => "no".into(),
        };
        let minutes = bag.took.as_secs_f64() / 60.0;
        let (others, undone) = (bag.others.len(), bag.not_carried_out.len());
        text += &format!("\n| {name} | {ground} | {found} | {} | {minutes:.1} | {others} | {undone} |", bag.plans);
    }
    text
}

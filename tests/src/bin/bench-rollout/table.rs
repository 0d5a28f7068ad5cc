//! The figures as scripts/BENCHMARKS.md has them.

use tests::{
    Error,
    spread::{median, spread},
};

use crate::{
    Measured,
    rollouts::{Figures, start_times},
};

type Figure = fn(&Figures) -> f64;

const COLUMNS: [(&str, Figure); 4] = [
    ("longest write gap, ms", |figures| figures.gap_ms),
    ("attempts repeated", |figures| figures.failed),
    ("rollout, s", |figures| figures.rollout_s),
    ("version and gates settled after, ms", |figures| figures.settled_ms),
];

pub fn print(all: &[Measured], size: usize) -> Result<(), Error> {
    let names: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
    println!("| | {} | writes lost |\n|---{}|---|", names.join(" | "), "|---".repeat(names.len()));
    for measured in all {
        if !measured.bare.is_empty() {
            println!("{}", row(&format!("{} to {}, bare loop", measured.from, measured.to.release), &measured.bare));
        }
        println!("{}", row(&format!("{} to {}, Baton", measured.from, measured.to.release), &measured.baton));
    }
    println!();
    for measured in all {
        beside(measured, size);
    }
    println!("agent --version, start to end: {} ms", spread(start_times()?));
    Ok(())
}

fn row(name: &str, all: &[Figures]) -> String {
    let cells: Vec<_> = COLUMNS.iter().map(|(_, of)| spread(all.iter().map(of).collect())).collect();
    let lost: usize = all.iter().map(|figures| figures.lost).sum();
    format!("| {name} | {} | {lost} |", cells.join(" | "))
}

/// Baton beside the bare loop of the same system, and what its agents needed.
fn beside(measured: &Measured, size: usize) {
    let system = measured.from.system;
    let both = |of: Figure| [&measured.baton, &measured.bare].map(|all| median(all.iter().map(of).collect()));
    let ([baton_s, bare_s], [baton_gap, bare_gap]) = (both(|f| f.rollout_s), both(|f| f.gap_ms));
    if !measured.bare.is_empty() {
        println!("{system}: Baton over the bare loop: {:.2} s a member", (baton_s - bare_s) / size as f64);
        println!("{system}: gap, Baton / bare loop: {:.2}", baton_gap / bare_gap);
    }
    let resident = measured.baton.iter().filter_map(|figures| figures.resident_mb);
    println!("{system}: agent run, resident at most: {} MB", spread(resident.collect()));
    println!("{system}: agent plan on the live cluster: {} ms", spread(measured.plans.clone()));
}

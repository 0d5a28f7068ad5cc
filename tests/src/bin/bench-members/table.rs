//! The figures as scripts/BENCHMARKS.md has them.

use tests::spread::{median, spread};

use crate::{Measured, figures::Figures};

type Figure = fn(&Figures) -> f64;

const GAP: Figure = |figures| figures.gap_ms;
const COLUMNS: [(&str, Figure); 4] = [
    ("longest write gap, ms", GAP),
    ("attempts repeated", |figures| figures.failed),
    ("time, s", |figures| figures.took_s),
    ("of it until the newcomer serves, s", Figures::newcomer_s),
];
/// Of the bare commands' longest gap and time.
const GOALS: [(&str, f64); 2] = [("longest gap", 1.2), ("time, with newcomers that take the same", 1.5)];

pub fn print(all: &[Measured]) {
    let names: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
    println!("| | {} | writes lost |\n|---{}|---|", names.join(" | "), "|---".repeat(names.len()));
    for measured in all {
        println!("{}", row(&format!("{}: bare commands", measured.name()), &measured.bare));
        println!("{}", row(&format!("{}: Baton", measured.name()), &measured.baton));
    }
    println!();
    for measured in all {
        for ((what, goal), ratio) in GOALS.into_iter().zip([gap_ratio(measured), time_ratio(measured)]) {
            let is_reached = if ratio <= goal { "reached" } else { "missed" };
            println!("{}: {what}, Baton / bare commands: {ratio:.2} (goal {goal}: {is_reached})", measured.name());
        }
    }
    println!();
    for measured in all {
        for (how, all) in [("bare commands", &measured.bare), ("Baton", &measured.baton)] {
            println!("{}: {how}, after ms: {}", measured.name(), marks(all));
        }
    }
}

fn middle(all: &[Figures], of: Figure) -> f64 {
    median(all.iter().map(of).collect())
}

fn gap_ratio(measured: &Measured) -> f64 {
    middle(&measured.baton, GAP) / middle(&measured.bare, GAP)
}

/// As if every newcomer had taken what they took in the median: which of its two times it takes is chance.
fn time_ratio(measured: &Measured) -> f64 {
    let all = measured.bare.iter().chain(&measured.baton);
    let newcomer = median(all.map(Figures::newcomer_s).collect());
    let [baton, bare] = [&measured.baton, &measured.bare].map(|all| middle(all, Figures::rest_s) + newcomer);
    baton / bare
}

fn row(name: &str, all: &[Figures]) -> String {
    let cells: Vec<_> = COLUMNS.iter().map(|(_, of)| spread(all.iter().map(of).collect())).collect();
    let lost: usize = all.iter().map(|figures| figures.lost).sum();
    format!("| {name} | {} | {lost} |", cells.join(" | "))
}

/// The median time of each mark, in the order of the first replacement.
fn marks(all: &[Figures]) -> String {
    let Some(first) = all.first() else { return String::new() };
    let time = |what: &str| {
        let of = |figures: &Figures| figures.marks.iter().find(|(name, _)| *name == what).map(|(_, at)| *at);
        median(all.iter().filter_map(of).collect())
    };
    let told: Vec<_> = first.marks.iter().map(|(what, _)| format!("{what} {:.0}", time(what))).collect();
    told.join(", ")
}

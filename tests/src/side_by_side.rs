//! Both systems measured in turns on the same machine, and the table of what they have shown.

use crate::{
    Error, releases,
    spread::{median, spread},
    system::{Build, System},
};

/// What one system has shown so far.
pub struct Shown {
    build: Build,
    /// For each row of the table a figure a run.
    rows: Vec<(String, Vec<f64>)>,
}

/// The systems that are measured: one alone where only that is wanted, or etcd is not there.
pub fn systems(only: Option<System>, release: &str) -> Result<Vec<Shown>, Error> {
    let mut all = Vec::new();
    for system in System::ALL.into_iter().filter(|system| only.is_none_or(|wanted| wanted == *system)) {
        match releases::get(system, release) {
            Ok(build) => all.push(Shown { build, rows: Vec::new() }),
            Err(error) if only.is_none() && system == System::Etcd => println!("etcd is left out: {error}"),
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Measures each of them so often. Each time it gives the same rows, each with its name.
pub async fn in_turns(
    all: &mut [Shown],
    runs: usize,
    measure: impl AsyncFn(&Build) -> Result<Vec<(String, f64)>, Error>,
) -> Result<(), Error> {
    for run in 1..=runs {
        for Shown { build, rows } in &mut *all {
            for (at, (name, figure)) in measure(build).await?.into_iter().enumerate() {
                match rows.get_mut(at) {
                    Some((_, figures)) => figures.push(figure),
                    None => rows.push((name, vec![figure])),
                }
            }
            eprintln!("run {run} of {runs}: {build} done");
        }
    }
    Ok(())
}

/// Prints a row for each figure, with the ratio where there are two systems.
pub fn print(all: &[Shown]) {
    let heads: Vec<_> = all.iter().map(|shown| shown.build.to_string()).collect();
    let ratio = if all.len() == 2 { " | ratio" } else { "" };
    println!("| | {}{ratio} |\n|---{}|", heads.join(" | "), "|---".repeat(all.len() + usize::from(all.len() == 2)));
    let Some(first) = all.first() else { return };
    for (row, (name, _)) in first.rows.iter().enumerate() {
        let cells: Vec<_> = all.iter().map(|shown| spread(shown.rows[row].1.clone())).collect();
        let ratio = match all {
            [node, etcd] => format!(" | {:.2}", median(node.rows[row].1.clone()) / median(etcd.rows[row].1.clone())),
            _ => String::new(),
        };
        println!("| {name} | {}{ratio} |", cells.join(" | "));
    }
}

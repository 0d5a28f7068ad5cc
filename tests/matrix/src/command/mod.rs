//! Carries out the command line: every cell of a matrix on real members of this machine.

mod bench;
mod work;

use std::{fs, path::PathBuf};

use agent::{
    command::Outcome,
    event::trouble::Trouble,
    execute::interrupt::Interrupt,
    report::{
        file::json::Facts,
        stop::{Reason, Stop},
    },
};

use crate::{
    chosen::{Wish, chosen},
    cli,
    model::Matrix,
    report::{grid::grid, junit::junit, object, words},
    verdict::{self, Verdict},
};
use bench::{Folder, bench, folder};
use work::work;

/// Runs a matrix to its end, or to a signal.
///
/// # Errors
/// The file's mistake, or what cannot be had on this machine.
pub async fn matrix(typed: &cli::Matrix) -> Result<Outcome, Trouble> {
    let mut matrix = Matrix::load(&typed.matrix)?;
    matrix.seed = typed.seed.unwrap_or(matrix.seed);
    matrix.plans = typed.plans.unwrap_or(matrix.plans);
    let wish = Wish { only: &typed.only, sample: typed.sample, keep: &typed.keep };
    let plans = chosen(&matrix, wish).map_err(Trouble::Usage)?;
    if typed.list {
        let text = plans.iter().map(|plan| format!("{plan}\n")).collect();
        let message = format!("{} plans; nothing was run", plans.len());
        let stop = Stop::well(Reason::Planned, message, "matrix", &typed.matrix);
        return Ok(Outcome { stop, facts: Facts::default(), text });
    }
    let interrupt = Interrupt::install().map_err(|error| Trouble::System(format!("no signals: {error}")))?;
    let folder = folder(typed)?;
    let bench = tokio::select! {
        bench = bench(&matrix, typed, folder.path()) => bench?,
        () = interrupt.asked(1) => {
            let outcomes: Vec<_> = plans.into_iter().map(verdict::Outcome::not_run).collect();
            return end(&matrix, typed, &outcomes, folder);
        }
    };
    let outcomes = work(bench, plans, typed, &interrupt).await;
    end(&matrix, typed, &outcomes, folder)
}

fn end(
    matrix: &Matrix,
    typed: &cli::Matrix,
    outcomes: &[verdict::Outcome],
    folder: Folder,
) -> Result<Outcome, Trouble> {
    let tally = words::tally(outcomes);
    let any = |is_it: fn(&Verdict) -> bool| outcomes.iter().any(|outcome| is_it(&outcome.verdict));
    let is_failed = any(|verdict| matches!(verdict, Verdict::Failed(_)));
    let is_whole = !any(|verdict| matches!(verdict, Verdict::NotRun));
    let shows_nothing = !any(|verdict| !matches!(verdict, Verdict::NotInjected));
    let left = if is_failed { format!("logs in {}", folder.path().display()) } else { String::new() };
    if is_failed {
        folder.keep();
    }
    let (reason, message) = match (is_whole, is_failed) {
        (false, _) => (Reason::Interrupted, format!("a signal asked for an end, and every member has ended; {tally}")),
        (true, true) => (Reason::MatrixFailed, tally.clone()),
        (true, false) if shows_nothing => (Reason::MatrixShowsNothing, tally.clone()),
        (true, false) => (Reason::MatrixPassed, tally.clone()),
    };
    report(matrix, typed, outcomes)?;
    let stop = Stop { left, next: None, ..Stop::well(reason, message, "matrix", &typed.matrix) };
    let mut facts = Facts::default();
    facts.more.insert("plans".into(), object::plans(outcomes));
    Ok(Outcome { stop, facts, text: format!("{tally}\n") })
}

/// Writes every report that was asked for; one that cannot be written keeps none of the others from it.
fn report(matrix: &Matrix, typed: &cli::Matrix, outcomes: &[verdict::Outcome]) -> Result<(), Trouble> {
    let file = typed.matrix.to_string_lossy();
    let reports = [
        (&typed.junit, junit(&matrix.name, &file, outcomes)),
        (&typed.html, grid(&matrix.name, &file, outcomes)),
        (&typed.json, format!("{:#}\n", object::plans(outcomes))),
    ];
    let write = |(path, text): (&Option<PathBuf>, String)| match path {
        Some(path) => fs::write(path, text).map_err(|error| format!("{}: {error}", path.display())),
        None => Ok(()),
    };
    let written = reports.map(write);
    written.into_iter().collect::<Result<Vec<()>, _>>().map(drop).map_err(Trouble::System)
}

//! `agent matrix`: every cell of a matrix on real members of this machine, one plan after the other.

use std::{
    collections::BTreeSet,
    fs,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use lab::system::Build;

use super::Outcome;
use crate::{
    cli,
    execute::{interrupt::Interrupt, prepare::wanted},
    host::artifact,
    matrix::{
        model::{Cell, Matrix},
        plan::{Plan, plan, sound::sound},
        report::{grid::grid, junit::junit, object, words},
        run::{Bench, Builds},
        shrink::shrink,
        verdict::{self, Verdict},
    },
    report::{
        json::Facts,
        stop::{Reason, Stop},
        trouble::Trouble,
    },
    words::with_causes,
};

/// Runs a matrix to its end, or to a signal.
///
/// # Errors
/// The file's mistake, or what cannot be had on this machine.
pub async fn matrix(typed: &cli::Matrix) -> Result<Outcome, Trouble> {
    let mut matrix = Matrix::load(&typed.matrix)?;
    matrix.seed = typed.seed.unwrap_or(matrix.seed);
    matrix.plans = typed.plans.unwrap_or(matrix.plans);
    let plans = chosen(&matrix, typed)?;
    if typed.list {
        let text = plans.iter().map(|plan| format!("{plan}\n")).collect();
        let message = format!("{} plans; nothing was run", plans.len());
        let stop = Stop::well(Reason::Planned, message, "matrix", &typed.matrix);
        return Ok(Outcome { stop, facts: Facts::default(), text });
    }
    let interrupt = Interrupt::install().map_err(|error| Trouble::System(format!("no signals: {error}")))?;
    let (folder, mut outcomes) = (folder(typed)?, Vec::new());
    let worked = tokio::select! {
        worked = work(&matrix, &plans, typed, folder.path(), &mut outcomes) => worked.map(|()| true),
        // To drop the work ends every process that it started.
        () = interrupt.asked(1) => Ok(false),
    };
    worked.and_then(|is_whole| end(&matrix, typed, &outcomes, folder, is_whole))
}

async fn work(
    matrix: &Matrix,
    plans: &[Plan],
    typed: &cli::Matrix,
    folder: &Path,
    outcomes: &mut Vec<verdict::Outcome>,
) -> Result<(), Trouble> {
    let agent = std::env::current_exe().map_err(|error| Trouble::System(format!("who am I: {error}")))?;
    let bench = Bench { builds: builds(matrix, folder).await?, agent, folder: fresh(folder)? };
    for (number, plan) in plans.iter().enumerate() {
        outcomes.push(one(&bench, plan, typed, number).await);
    }
    Ok(())
}

/// A folder that no run before this one used.
fn fresh(folder: &Path) -> Result<PathBuf, Trouble> {
    let made =
        (1..).map(|number| folder.join(format!("run-{number}"))).find_map(|fresh| match fs::create_dir(&fresh) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
            made => Some(made.map(|()| fresh)),
        });
    let made = made.unwrap_or_else(|| Err(ErrorKind::AlreadyExists.into()));
    made.map_err(|error| Trouble::System(format!("no folder for the clusters: {error}")))
}

/// The plans of the cells that were asked for.
fn chosen(matrix: &Matrix, typed: &cli::Matrix) -> Result<Vec<Plan>, Trouble> {
    // A cell that is named in full may be of a seed that the file would not come to.
    let (named, parts): (Vec<_>, Vec<_>) = typed.only.iter().partition(|text| matrix.cell(text).is_some());
    let is_chosen = |cell: &Cell| parts.iter().any(|text| cell.id().contains(*text));
    let mut cells: Vec<Cell> = named.iter().filter_map(|text| matrix.cell(text)).collect();
    cells.extend(match (typed.sample, &typed.only[..]) {
        (Some(count), []) => matrix.sample(count as usize, |_| true),
        (Some(count), _) => matrix.sample(count as usize, is_chosen),
        (None, []) => matrix.cells(),
        (None, _) => matrix.cells().into_iter().filter(is_chosen).collect(),
    });
    if cells.is_empty() {
        return Err(Trouble::Usage(format!("no plan's name contains `{}`; --list shows all", typed.only.join("`, `"))));
    }
    let mut plans: Vec<Plan> = cells.iter().map(plan).collect();
    if !typed.keep.is_empty() {
        let [whole] = &plans[..] else {
            return Err(Trouble::Usage("--keep is for one plan; name it with --only".into()));
        };
        let part = whole.only(&typed.keep.iter().cloned().collect::<BTreeSet<_>>());
        sound(&part).map_err(|why| Trouble::Usage(format!("--keep leaves a plan that makes no sense: {why}")))?;
        plans = vec![part];
    }
    Ok(plans)
}

/// A folder that is removed at the end, unless it is the user's own or something failed.
enum Folder {
    Own(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Folder {
    fn path(&self) -> &Path {
        match self {
            Self::Own(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }

    fn keep(self) {
        if let Self::Temporary(folder) = self {
            let _ = folder.keep();
        }
    }
}

fn folder(typed: &cli::Matrix) -> Result<Folder, Trouble> {
    let made = match &typed.dir {
        Some(dir) => fs::create_dir_all(dir).and_then(|()| dir.canonicalize()).map(Folder::Own),
        None => tempfile::Builder::new().prefix("baton-matrix-").tempdir().map(Folder::Temporary),
    };
    made.map_err(|error| Trouble::System(format!("no folder for the clusters: {error}")))
}

/// Every release of the matrix, unpacked and asked what it is.
async fn builds(matrix: &Matrix, folder: &Path) -> Result<Builds, Trouble> {
    let mut builds = Builds::new();
    for tested in &matrix.systems {
        let name = tested.system.name();
        for (release, from) in &tested.releases {
            let unprepared = |why: String| Trouble::Unprepared(format!("{name} {release}: {why}"));
            let mut artifact = wanted(release, from).map_err(|why| unprepared(why.to_string()))?;
            artifact.executable.get_or_insert_with(|| name.into());
            let (releases, downloads) = (folder.join("releases").join(name), folder.join("downloads"));
            let installed = artifact::install(&artifact, &releases, &downloads, &|_| {}).await;
            let installed = installed.map_err(|error| unprepared(with_causes(&error)))?;
            let bin = installed.executable.parent().unwrap_or(Path::new("/"));
            let build = Build::of(tested.system, bin).map_err(|error| unprepared(error.to_string()))?;
            if build.release != *release {
                return Err(unprepared(format!("it says that it is {}", build.release)));
            }
            builds.insert((name, release.clone()), build);
        }
    }
    Ok(builds)
}

async fn one(bench: &Bench, plan: &Plan, typed: &cli::Matrix, number: usize) -> verdict::Outcome {
    say(&plan.to_string());
    let mut outcome = bench.run(plan, &number.to_string()).await;
    if let Verdict::Failed(failure) = &mut outcome.verdict
        && !typed.no_shrink
        && failure.step > 0
    {
        say(&format!("it failed in step {}: {}; looking for a smaller plan that fails\n", failure.step, failure.why));
        failure.smallest = smallest(bench, plan, (failure.step, &failure.why), number).await;
    }
    say(&words::record(&outcome.record));
    if let Verdict::Failed(failure) = &outcome.verdict {
        say(&words::failure(failure, plan, &typed.matrix.to_string_lossy()));
    }
    say(&format!("{}\n\n", words::line(&outcome)));
    outcome
}

async fn smallest(bench: &Bench, plan: &Plan, failed: (usize, &str), number: usize) -> Option<(Plan, String)> {
    let mut tries = 0;
    shrink(plan, failed, |smaller| {
        tries += 1;
        let name = format!("{number}-smaller-{tries}");
        async move {
            match bench.run(&smaller, &name).await.verdict {
                Verdict::Failed(failure) => {
                    // The logs of the whole plan are kept; of the smaller ones they would only fill the disk.
                    let _ = fs::remove_dir_all(&failure.folder);
                    // Before the first step nothing of the plan can have failed.
                    (failure.step > 0).then_some((failure.step, failure.why))
                }
                _ => None,
            }
        }
    })
    .await
}

/// A closed terminal changes no run.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn end(
    matrix: &Matrix,
    typed: &cli::Matrix,
    outcomes: &[verdict::Outcome],
    folder: Folder,
    is_whole: bool,
) -> Result<Outcome, Trouble> {
    let tally = words::tally(outcomes);
    let is_failed = outcomes.iter().any(|outcome| matches!(outcome.verdict, Verdict::Failed(_)));
    let left = if is_failed { format!("logs in {}", folder.path().display()) } else { String::new() };
    if is_failed {
        folder.keep();
    }
    let (reason, message) = match (is_whole, is_failed) {
        (false, _) => (Reason::Interrupted, format!("a signal asked for an end, and every member has ended; {tally}")),
        (true, true) => (Reason::MatrixFailed, tally.clone()),
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

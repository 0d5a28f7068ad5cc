//! `agent matrix`: every cell of a matrix on real members of this machine, one plan after the other.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
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
    let kept = folder(typed)?;
    let bench = Bench { builds: builds(&matrix, kept.path()).await?, folder: kept.path().join("plans") };
    tokio::select! {
        outcomes = all(&bench, &plans, typed) => end(&matrix, typed, &outcomes, kept),
        // To drop the work ends every process that it started.
        () = interrupt.asked(1) => {
            let message = "a signal asked for an end; every member that was started has ended".into();
            let stop = Stop::well(Reason::Interrupted, message, "matrix", &typed.matrix);
            Ok(Outcome { stop, facts: Facts::default(), text: String::new() })
        }
    }
}

/// The plans of the cells that were asked for.
fn chosen(matrix: &Matrix, typed: &cli::Matrix) -> Result<Vec<Plan>, Trouble> {
    // A cell that is named in full may be of a seed that the file would not come to.
    let named = |text: &String| matrix.cell(text);
    let mut cells: Vec<Cell> = typed.only.iter().filter_map(named).collect();
    if cells.is_empty() {
        let is_chosen = |cell: &Cell| typed.only.is_empty() || typed.only.iter().any(|text| cell.id().contains(text));
        cells = match typed.sample {
            Some(count) => matrix.sample(count as usize, is_chosen),
            None => matrix.cells().into_iter().filter(is_chosen).collect(),
        };
    }
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

async fn all(bench: &Bench, plans: &[Plan], typed: &cli::Matrix) -> Vec<verdict::Outcome> {
    let mut outcomes = Vec::new();
    for (number, plan) in plans.iter().enumerate() {
        say(&plan.to_string());
        let mut outcome = bench.run(plan, &number.to_string()).await;
        if let Verdict::Failed(failure) = &mut outcome.verdict
            && !typed.no_shrink
            && failure.step > 0
        {
            say(&format!(
                "it failed in step {}: {}; looking for a smaller plan that fails\n",
                failure.step, failure.why
            ));
            failure.smallest = smallest(bench, plan, (failure.step, &failure.why), number).await;
        }
        say(&words::record(&outcome.record));
        if let Verdict::Failed(failure) = &outcome.verdict {
            say(&words::failure(failure, plan, &typed.matrix.to_string_lossy()));
        }
        say(&format!("{}\n\n", words::line(&outcome)));
        outcomes.push(outcome);
    }
    outcomes
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
                    Some((failure.step, failure.why))
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
) -> Result<Outcome, Trouble> {
    let file = typed.matrix.to_string_lossy();
    let reports = [
        (&typed.junit, junit(&matrix.name, &file, outcomes)),
        (&typed.html, grid(&matrix.name, &file, outcomes)),
        (&typed.json, format!("{:#}\n", object::plans(outcomes))),
    ];
    for (path, text) in reports {
        let Some(path) = path else { continue };
        fs::write(path, text).map_err(|error| Trouble::System(format!("{}: {error}", path.display())))?;
    }
    let tally = words::tally(outcomes);
    let is_failed = outcomes.iter().any(|outcome| matches!(outcome.verdict, Verdict::Failed(_)));
    let reason = if is_failed { Reason::MatrixFailed } else { Reason::MatrixPassed };
    let left = if is_failed { format!("logs in {}", folder.path().display()) } else { String::new() };
    if is_failed {
        folder.keep();
    }
    let stop = Stop { left, next: None, ..Stop::well(reason, tally.clone(), "matrix", &typed.matrix) };
    let mut facts = Facts::default();
    facts.more.insert("plans".into(), object::plans(outcomes));
    Ok(Outcome { stop, facts, text: format!("{tally}\n") })
}

//! What is there to run plans with: a folder, and every release of the matrix.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use lab::system::Build;
use proto::Release;

use agent::{
    command::companion, event::trouble::Trouble, execute::prepare::wanted, host::release::artifact, words::with_causes,
};

use crate::{
    cli,
    model::Matrix,
    past::{ancestry::Ancestry, kept::Kept},
    run::{Bench, Builds},
};

/// Every release is had, and a folder that no run before this one used.
pub(super) async fn bench(matrix: &Matrix, typed: &cli::Matrix, folder: &Path) -> Result<Bench, Trouble> {
    let agent = agent(typed)?;
    let kept = Kept::in_folder(folder.join("pasts"));
    let builds = builds(matrix, folder).await?;
    let tools = tools(matrix, &builds)?;
    Ok(Bench { builds, agent, folder: fresh(folder)?, tools, kept })
}

/// The agent whose rollouts are tested.
fn agent(typed: &cli::Matrix) -> Result<PathBuf, Trouble> {
    let named = typed.agent.clone().or_else(|| companion::find("agent"));
    named.filter(|agent| agent.is_file()).ok_or_else(|| {
        Trouble::Unprepared("there is no agent to test: put it beside agent-matrix, or name it with --agent".into())
    })
}

/// The releases whose etcdctl is typed. That, and what pasts are made with, must lie beside their etcd.
fn tools(matrix: &Matrix, builds: &Builds) -> Result<Vec<Build>, Trouble> {
    let mut typed = Vec::new();
    for tested in &matrix.systems {
        let of = |release: &Release| builds.get(&(tested.system.name(), release.clone()));
        let pasts = tested.pasts.iter().flat_map(Ancestry::tools);
        let wanted = tested.etcdctl.iter().map(|release| (release, "etcdctl")).chain(pasts);
        for (build, tool) in wanted.filter_map(|(release, tool)| Some((of(release)?, tool))) {
            if !build.bin.join(tool).is_file() {
                return Err(Trouble::Unprepared(format!("{build}: no {tool} lies beside it")));
            }
        }
        typed.extend(tested.etcdctl.iter().filter_map(of).cloned());
    }
    Ok(typed)
}

fn fresh(folder: &Path) -> Result<PathBuf, Trouble> {
    let made =
        (1..).map(|number| folder.join(format!("run-{number}"))).find_map(|fresh| match fs::create_dir(&fresh) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
            made => Some(made.map(|()| fresh)),
        });
    let made = made.unwrap_or_else(|| Err(ErrorKind::AlreadyExists.into()));
    made.map_err(|error| Trouble::System(format!("no folder for the clusters: {error}")))
}

/// A folder that is removed at the end, unless it is the user's own or something failed.
pub(super) enum Folder {
    Own(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Folder {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Own(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }

    pub(super) fn keep(self) {
        if let Self::Temporary(folder) = self {
            let _ = folder.keep();
        }
    }
}

/// Makes it, where the user says or where temporary files lie.
pub(super) fn folder(typed: &cli::Matrix) -> Result<Folder, Trouble> {
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

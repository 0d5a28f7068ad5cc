//! Programs that come beside the agent and are started under a verb of it, as git does with its subcommands.

use std::{
    env,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    cli::{Cli, Form, Matrix},
    event::trouble::Trouble,
};

/// Becomes agent-matrix, with the agent that was started as the one that is tested.
///
/// # Errors
/// It is not installed, or cannot be executed.
pub fn matrix(cli: &Cli, typed: &Matrix) -> Result<u8, Trouble> {
    let Some(program) = find("agent-matrix") else {
        return Err(Trouble::Unprepared(format!(
            "agent-matrix is neither beside {} nor on the PATH; to get it, build it from the same sources: cargo build \
             --release --bin agent-matrix",
            own().map_or_else(|| "this agent".into(), |own| own.display().to_string())
        )));
    };
    let mut command = Command::new(&program);
    if cli.output == Form::Json {
        command.args(["--output", "json"]);
    }
    command.args(["--log", &cli.log]);
    if let Some(own) = own() {
        command.arg("--agent").arg(own);
    }
    let error = command.args(&typed.arguments).exec();
    Err(Trouble::System(format!("{} cannot be run: {error}", program.display())))
}

/// The program of this name beside the one that runs, else on the PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let beside = own().and_then(|own| Some(own.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    find_in(beside.into_iter().chain(env::split_paths(&path)), name)
}

/// Never from where one happens to be: a folder that is not named from the root is passed over.
fn find_in(folders: impl Iterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file();
    folders.filter(|folder| Path::is_absolute(folder)).map(|folder| folder.join(name)).find(is_program)
}

fn own() -> Option<PathBuf> {
    env::current_exe().ok()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_program_is_run_from_the_first_folder_that_is_named_from_the_root() {
        let home = tempfile::tempdir().unwrap();
        let folder = |name: &str, mode| {
            let folder = home.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("tool"), "").unwrap();
            fs::set_permissions(folder.join("tool"), fs::Permissions::from_mode(mode)).unwrap();
            folder
        };
        let (plain, first, second) = (folder("plain", 0o644), folder("first", 0o755), folder("second", 0o755));
        for (folders, found) in [
            (vec![first.clone(), second.clone()], Some(&first)),
            (vec![plain.clone(), second.clone()], Some(&second)),
            (vec!["".into(), ".".into(), "bin".into()], None),
            (vec![plain], None),
        ] {
            assert_eq!(
                find_in(folders.clone().into_iter(), "tool"),
                found.map(|folder| folder.join("tool")),
                "{folders:?}"
            );
        }
    }
}

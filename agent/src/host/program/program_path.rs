//! Which file a command's name means, as execvp(3) finds it, and who may change that; and so of what runs it, where that is a script.
//!
//! Arguments are not looked at: whether one is a script that the program runs is the program's own affair.

use std::{
    env,
    ffi::OsStr,
    fs::File,
    io::Read as _,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::path_owner::{self, PathOwnerError, Writers};

/// Of a file: in it the kernel looks for the interpreter (execve(2), `BINPRM_BUF_SIZE`).
const FIRST_LINE: u64 = 256;
/// A script may be run by a script, and so on, as often (execve(2)).
const MOST_INTERPRETERS: usize = 5;

/// Where a program of this name is looked for, first to last.
pub(crate) fn candidates(name: &str) -> Vec<PathBuf> {
    candidates_in(name, &env::var_os("PATH").unwrap_or_default())
}

fn candidates_in(name: &str, path: &OsStr) -> Vec<PathBuf> {
    match name {
        "" => Vec::new(),
        name if name.contains('/') => vec![name.into()],
        // An empty part is the working folder.
        name => env::split_paths(path).map(|folder| Path::new(".").join(folder).join(name)).collect(),
    }
}

/// Refuses a program that others than root and the agent's user may change, or may put another one before: in a folder of
/// `PATH` that is searched first. What is not there is not judged.
///
/// # Errors
/// The place, and who may change it.
pub(crate) fn check(name: &str) -> Result<(), PathOwnerError> {
    check_in(name, &env::var_os("PATH").unwrap_or_default())
}

fn check_in(name: &str, path: &OsStr) -> Result<(), PathOwnerError> {
    let writers = Writers::own();
    for candidate in candidates_in(name, path) {
        if candidate.is_file() {
            return check_with_interpreters(candidate, &writers);
        }
        if let Some(folder) = candidate.parent().filter(|folder| folder.is_dir()) {
            path_owner::check(folder, &writers)?;
        }
    }
    Ok(())
}

fn check_with_interpreters(program: PathBuf, writers: &Writers) -> Result<(), PathOwnerError> {
    path_owner::check(&program, writers)?;
    let mut script = program;
    for _ in 0..MOST_INTERPRETERS {
        // One that is not there cannot be run.
        let Some(runs_it) = interpreter(&script).filter(|path| path.is_file()) else { break };
        path_owner::check(&runs_it, writers)?;
        script = runs_it;
    }
    Ok(())
}

/// What runs a file, if that is a script.
fn interpreter(file: &Path) -> Option<PathBuf> {
    let mut first = Vec::new();
    File::open(file).ok()?.take(FIRST_LINE).read_to_end(&mut first).ok()?;
    let line = first.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let name = line.split(|byte| b" \t\r".contains(byte)).find(|word| !word.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_program_is_as_safe_as_the_folders_that_are_searched_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, mode) in [("safe", 0o755), ("open", 0o777)] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("drain"), "#!/bin/sh\n").unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::write(at("safe/only"), "#!/bin/sh\n").unwrap();
        fs::write(at("safe/loose"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(at("safe/loose"), fs::Permissions::from_mode(0o757)).unwrap();
        // Runs scripts, and anybody may change it.
        fs::write(at("open/sh"), "#!/bin/sh\n").unwrap();
        for (name, line) in [
            ("by-open", "#!  INTERPRETER -e"),
            ("by-script", "#!SCRIPT"),
            ("by-none", "#!/absent/sh"),
            ("no-line", "#!"),
        ] {
            let line = line.replace("INTERPRETER", &at("open/sh").display().to_string());
            fs::write(at("safe").join(name), line.replace("SCRIPT", &at("safe/by-open").display().to_string()) + "\n")
                .unwrap();
        }
        let path = |names: &[&str]| env::join_paths(names.iter().map(|name| at(name))).unwrap();
        let whole = |name: &str| at(name).display().to_string();
        for (name, searched, is_safe) in [
            ("drain", path(&["safe", "open"]), true),
            ("drain", path(&["open", "safe"]), false),
            ("only", path(&["absent", "safe", "open"]), true),
            ("only", path(&["open", "safe"]), false),
            ("loose", path(&["safe"]), false),
            ("absent", path(&["safe"]), true),
            (&whole("safe/drain"), path(&["open"]), true),
            (&whole("open/drain"), path(&["safe"]), false),
            (&whole("safe/absent"), path(&["open"]), true),
            ("", path(&["open"]), true),
            ("by-open", path(&["safe"]), false),
            ("by-script", path(&["safe"]), false),
            ("by-none", path(&["safe"]), true),
            ("no-line", path(&["safe"]), true),
        ] {
            assert_eq!(check_in(name, &searched).is_ok(), is_safe, "{name} in {searched:?}");
        }
    }
}

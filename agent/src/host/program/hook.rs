//! A hook: the operator's own command around a node's step.
//!
//! What a failing hook means (before: the step does not begin; after: a warning) is not decided here.

use std::{fs, io::Read as _, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use super::{
    exec::{self, ExecError, Output, quoted},
    path_owner::PathOwnerError,
    program_path,
};

/// How long a hook may take.
pub const LIMIT: Duration = Duration::from_secs(60);
/// How much of a script's first line the kernel reads, in bytes.
const MOST_OF_A_LINE: usize = 256;

#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// Others may change what would be run.
    #[error("hook {program} is not safe to run")]
    Owner {
        /// The program, as it was given.
        program: String,
        source: Box<PathOwnerError>,
    },
    /// There is no such program.
    #[error("hook {program} {why}")]
    Missing {
        /// The program, as it was given.
        program: String,
        why: String,
    },
    /// It could not be run, or did not end in time.
    #[error("the hook was not run, or not to its end")]
    Exec(#[source] ExecError),
    /// It ended, but not with exit code 0.
    #[error("hook {program} ended with {how}{}", quoted(output))]
    Failed {
        /// The program, as it was given.
        program: String,
        /// `exit 1`, `signal 9`.
        how: String,
        output: String,
    },
}

/// Runs a hook, templates already expanded, for at most [`LIMIT`].
pub async fn run(argv: &[String]) -> Result<(), HookError> {
    run_within(argv, LIMIT).await
}

/// Refuses a hook that others than root and the agent's user may change, as it runs with the agent's rights; and a path at which no program
/// lies.
pub fn check(argv: &[String]) -> Result<(), HookError> {
    let program = argv.first().map_or("", String::as_str);
    program_path::check(program)
        .map_err(|source| HookError::Owner { program: program.into(), source: source.into() })?;
    if !program.contains('/') {
        return Ok(());
    }
    let why = match fs::metadata(program) {
        Ok(seen) if seen.is_file() && seen.permissions().mode() & 0o111 != 0 => match interpreter(program) {
            Some(missing) if !missing.exists() => format!("is to be run by {}, which is not there", missing.display()),
            _ => return Ok(()),
        },
        Ok(_) => "is no program that may be run".to_owned(),
        Err(error) => format!("cannot be looked at: {error}"),
    };
    Err(HookError::Missing { program: program.into(), why })
}

/// What a script is run by, as its first line says (execve(2)).
fn interpreter(script: &str) -> Option<PathBuf> {
    let mut line = [0; MOST_OF_A_LINE];
    let read = fs::File::open(script).ok()?.read(&mut line).ok()?;
    let line = line[..read].strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.split_whitespace().next().map(PathBuf::from)
}

/// As [`run`], for at most so long.
pub async fn run_within(argv: &[String], limit: Duration) -> Result<(), HookError> {
    check(argv)?;
    let ended = exec::run(argv, limit, &Output::Kept).await.map_err(HookError::Exec)?;
    if ended.is_success() {
        return Ok(());
    }
    let program = argv.first().cloned().unwrap_or_default();
    Err(HookError::Failed { program, output: ended.output().to_owned(), how: ended.how })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Vec<String> {
        ["/bin/sh", "-c", script].map(String::from).to_vec()
    }

    #[tokio::test]
    async fn a_hook_fails_with_its_own_words() {
        run(&sh("exit 0")).await.unwrap();
        let error = run(&sh("echo not now >&2; exit 4")).await.unwrap_err();
        assert_eq!(error.to_string(), "hook /bin/sh ended with exit 4: not now");
        let error = run_within(&sh("sleep 600"), Duration::from_millis(200)).await.unwrap_err();
        assert!(matches!(error, HookError::Exec(ExecError::TimedOut { .. })), "{error}");
    }

    #[test]
    fn a_path_at_which_no_program_lies_is_no_hook() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drain").display().to_string();
        let said = |path: &str| check(&[path.to_owned()]).map_err(|error| error.to_string());
        assert!(said(&path).unwrap_err().contains("cannot be looked at"));
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert_eq!(said(&path).unwrap_err(), format!("hook {path} is no program that may be run"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        said(&path).unwrap();
        fs::write(&path, "#! /no/such/shell -e\n").unwrap();
        assert_eq!(said(&path).unwrap_err(), format!("hook {path} is to be run by /no/such/shell, which is not there"));
        // Looked for where the agent is started.
        said("no-such-program").unwrap();
    }

    #[tokio::test]
    async fn a_hook_that_others_may_change_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("drain");
        fs::write(&script, format!("#!/bin/sh\n: > {}/ran\n", folder.path().display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o757)).unwrap();
        let argv = [script.display().to_string()];
        let error = run(&argv).await.unwrap_err();
        assert!(crate::words::with_causes(&error).ends_with(&format!("type: chmod go-w {}", argv[0])), "{error:?}");
        assert!(!folder.path().join("ran").exists());
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        run(&argv).await.unwrap();
        assert!(folder.path().join("ran").exists());
    }

    #[tokio::test]
    async fn arguments_reach_a_hook_untouched_by_any_shell() {
        let check = sh("test \"$1\" = '$HOME; *'");
        run(&[check, vec!["sh".into(), "$HOME; *".into()]].concat()).await.unwrap();
    }
}

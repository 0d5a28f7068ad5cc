//! A hook: the operator's own command around a node's step.
//!
//! What a failing hook means (before: the step does not begin; after: a warning) is not decided here.

use std::time::Duration;

use super::exec::{self, ExecError, Output, quoted};

/// How long a hook may take.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Why a hook failed.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// It could not be run, or did not end in time.
    #[error("hook failed")]
    Exec(#[source] ExecError),
    /// It ended, but not with exit code 0.
    #[error("hook {program} ended with {how}{}", quoted(output))]
    Failed {
        /// The program, as it was given.
        program: String,
        /// `exit 1`, `signal 9`.
        how: String,
        /// The end of its output.
        output: String,
    },
}

/// Runs a hook, templates already expanded, for at most [`LIMIT`].
pub async fn run(argv: &[String]) -> Result<(), HookError> {
    run_within(argv, LIMIT).await
}

async fn run_within(argv: &[String], limit: Duration) -> Result<(), HookError> {
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

    #[tokio::test]
    async fn arguments_reach_a_hook_untouched_by_any_shell() {
        let check = sh("test \"$1\" = '$HOME; *'");
        run(&[check, vec!["sh".into(), "$HOME; *".into()]].concat()).await.unwrap();
    }
}

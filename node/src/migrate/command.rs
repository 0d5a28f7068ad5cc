//! What is typed after `node migrate`: etcdutl's words.

use std::path::PathBuf;

use proto::ClusterVersion;

use crate::cluster::downgrade::LOWEST;

pub const USAGE: &str = "\
Makes what a member has stored fit for a lower release, while nothing runs on it (KEP-4647, \"Cluster Offline Downgrade\").

Usage: node migrate --target-version=3.N --data-dir=DIR

  --target-version=3.N   the cluster version to go down to
  --data-dir=DIR         the data directory of a member that is stopped

Run it with the release that the members had, on all of them, before any is started again; then start all with the lower one.
Every feature is off until the members have said what they want there. Keys, their history and leases stay.
";

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Help,
    Migrate { data_dir: PathBuf, target: ClusterVersion },
}

/// What was typed and cannot be done. It ends the process with 2, as a wrong flag of the node does.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrateCommandError {
    #[error("node migrate: {0}: there is no such flag; expected --target-version and --data-dir")]
    Unknown(String),
    #[error("node migrate: --{0}: expected a value")]
    Missing(&'static str),
    #[error("--target-version: `{0}` is wrong: expected a version such as 3.6, not below {LOWEST}")]
    Version(String),
}

impl Command {
    /// Reads what comes after `migrate`.
    ///
    /// # Errors
    /// [`MigrateCommandError`]
    pub fn read(arguments: &[String]) -> Result<Self, MigrateCommandError> {
        let (mut data_dir, mut target) = (None, None);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if matches!(argument.as_str(), "--help" | "-h" | "help") {
                return Ok(Self::Help);
            }
            let (flag, value) = argument.split_once('=').map_or((argument.as_str(), None), |(flag, v)| (flag, Some(v)));
            let (name, place) = match flag.trim_start_matches('-') {
                "data-dir" if flag.starts_with('-') => ("data-dir", &mut data_dir),
                "target-version" if flag.starts_with('-') => ("target-version", &mut target),
                _ => return Err(MigrateCommandError::Unknown(argument.clone())),
            };
            let value = value.map(str::to_owned).or_else(|| arguments.next().cloned());
            *place = Some(value.filter(|value| !value.is_empty()).ok_or(MigrateCommandError::Missing(name))?);
        }
        let target = target.ok_or(MigrateCommandError::Missing("target-version"))?;
        let data_dir = data_dir.ok_or(MigrateCommandError::Missing("data-dir"))?.into();
        match target.parse() {
            Ok(target) if target >= LOWEST => Ok(Self::Migrate { data_dir, target }),
            _ => Err(MigrateCommandError::Version(target)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_read_or_named() {
        let read = |line: &str| Command::read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let target = ClusterVersion { major: 3, minor: 6 };
        let migrates = Ok(Command::Migrate { data_dir: "d".into(), target });
        assert_eq!(read("--target-version=3.6 --data-dir=d"), migrates);
        assert_eq!(read("-data-dir d --target-version 3.6"), migrates);
        assert_eq!(read("--help"), Ok(Command::Help));
        for (line, wrong) in [
            ("", "node migrate: --target-version: expected a value"),
            ("--target-version=3.6", "node migrate: --data-dir: expected a value"),
            ("--target-version", "node migrate: --target-version: expected a value"),
            ("--target-version=3.6 --data-dir=", "node migrate: --data-dir: expected a value"),
            ("--force", "node migrate: --force: there is no such flag; expected --target-version and --data-dir"),
            ("d", "node migrate: d: there is no such flag; expected --target-version and --data-dir"),
            (
                "--target-version=3.4 --data-dir=d",
                "--target-version: `3.4` is wrong: expected a version such as 3.6, not below 3.5",
            ),
            (
                "--target-version=next --data-dir=d",
                "--target-version: `next` is wrong: expected a version such as 3.6, not below 3.5",
            ),
        ] {
            assert_eq!(read(line).unwrap_err().to_string(), wrong, "{line}");
        }
    }
}

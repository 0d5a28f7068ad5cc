//! What is typed after `node snapshot`: etcdutl's words, with its defaults.

use std::path::PathBuf;

use super::{Format, HashCheck, Restoring};
use crate::{
    config::{Config, ConfigError},
    features::FEATURES,
};

/// A flag, what its value is called (none: it is true or false), its default, and what it is for.
type Flag = (&'static str, &'static str, &'static str, &'static str);

const STATUS_FLAGS: &[Flag] = &[("write-out", "FORMAT", "simple", "simple, table, json or fields; also -w")];

const RESTORE_FLAGS: &[Flag] = &[
    ("data-dir", "DIR", "", "the folder to make (NAME.etcd)"),
    ("name", "NAME", "default", "this member's name"),
    ("initial-cluster", "MEMBERS", "default=http://localhost:2380", "the members of the new cluster"),
    ("initial-cluster-token", "TOKEN", "etcd-cluster", "tells the new cluster from others"),
    ("initial-advertise-peer-urls", "URLS", "http://localhost:2380", "where other members find this one"),
    ("skip-hash-check", "", "", "read a file that does not end in its hash"),
    ("bump-revision", "N", "0", "leave out so many revisions; with --mark-compacted"),
    ("mark-compacted", "", "", "compact up to there, so that watches begin anew"),
    ("initial-memory-map-size", "BYTES", "", "taken, and not used: nothing is mapped"),
    ("write-out", "FORMAT", "", "taken, and not used"),
];

/// etcdutl's, which is refused.
const WAL_DIR: &str = "wal-dir";

/// What is to be done.
#[derive(Debug)]
pub enum Command {
    Help,
    Status { file: PathBuf, format: Format },
    Restore(Box<Restoring>),
}

/// What was typed and cannot be done. It ends the process with 2, as a wrong flag of the node does.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotCommandError {
    #[error(
        "node snapshot: expected `status FILE` or `restore FILE --data-dir DIR`; `node snapshot --help` has all flags"
    )]
    Verb,
    #[error("node snapshot {verb}: expected one file, found {found}")]
    Files { verb: &'static str, found: usize },
    #[error("node snapshot {verb}: {flag}: there is no such flag{}", nearest.map_or_else(String::new, |name| format!("; is it --{name}?")))]
    Unknown { verb: &'static str, flag: String, nearest: Option<&'static str> },
    #[error("--{flag}: expected a value")]
    Bare { flag: &'static str },
    #[error("--{flag}: `{found}` is wrong: expected {expected}")]
    Value { flag: &'static str, found: String, expected: &'static str },
    #[error("--wal-dir: not here: a node keeps its log in the data directory; leave the flag out")]
    WalDir,
    #[error("--bump-revision and --mark-compacted: expected both or neither, with --bump-revision above 0")]
    BumpAlone,
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// The lines of `--help`.
pub fn usage() -> String {
    let line = |(name, value, default, help): &Flag| {
        let flag = if value.is_empty() { format!("--{name}") } else { format!("--{name}={value}") };
        let default = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        format!("  {flag:<36} {help}{default}\n")
    };
    let lines = |flags: &[Flag]| flags.iter().map(line).collect::<String>();
    format!(
        "What `etcdctl snapshot save` has written from a node.\n\n\
         Usage: node snapshot status FILE\n\n  Says what is in it.\n\n{}\n\
         Usage: node snapshot restore FILE --data-dir=DIR\n\n  Makes the data directory of a member of a new cluster. Do so for each \
         member, from the same file, then start all.\n\n{}",
        lines(STATUS_FLAGS),
        lines(RESTORE_FLAGS)
    )
}

impl Command {
    /// Reads what comes after `snapshot`.
    ///
    /// # Errors
    /// [`SnapshotCommandError`]
    pub fn read(arguments: impl IntoIterator<Item = String>) -> Result<Self, SnapshotCommandError> {
        let arguments: Vec<String> = arguments.into_iter().collect();
        if arguments.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h" | "help")) {
            return Ok(Self::Help);
        }
        match arguments.split_first() {
            Some((verb, rest)) if verb == "status" => {
                let typed = Typed::read("status", STATUS_FLAGS, rest)?;
                Ok(Self::Status { file: typed.file()?, format: typed.format()? })
            }
            Some((verb, rest)) if verb == "restore" => {
                Ok(Self::Restore(Box::new(Typed::read("restore", RESTORE_FLAGS, rest)?.restoring()?)))
            }
            _ => Err(SnapshotCommandError::Verb),
        }
    }
}

/// Files and flags, as they were typed.
struct Typed {
    verb: &'static str,
    flags: &'static [Flag],
    files: Vec<String>,
    given: Vec<(&'static str, String)>,
}

impl Typed {
    fn read(verb: &'static str, flags: &'static [Flag], arguments: &[String]) -> Result<Self, SnapshotCommandError> {
        let (mut files, mut given) = (Vec::new(), Vec::new());
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let Some(flag) = argument.strip_prefix('-').filter(|flag| !flag.is_empty()) else {
                files.push(argument.clone());
                continue;
            };
            let (name, value) = match flag.trim_start_matches('-').split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag.trim_start_matches('-'), None),
            };
            let name = if name == "w" { "write-out" } else { name };
            if name == WAL_DIR && verb == "restore" {
                return Err(SnapshotCommandError::WalDir);
            }
            let Some((known, kind, ..)) = flags.iter().find(|(known, ..)| *known == name) else {
                let close = |(known, ..): &&Flag| strsim::damerau_levenshtein(known, name) <= 2;
                let nearest = flags.iter().find(close).map(|(known, ..)| *known);
                return Err(SnapshotCommandError::Unknown { verb, flag: argument.clone(), nearest });
            };
            let alone = kind.is_empty().then(|| "true".to_owned());
            let value = value.or(alone).or_else(|| arguments.next().cloned());
            given.push((*known, value.ok_or(SnapshotCommandError::Bare { flag: known })?));
        }
        Ok(Self { verb, flags, files, given })
    }

    /// The last one counts, as with etcdutl.
    fn value(&self, flag: &str) -> &str {
        let given = self.given.iter().rev().find(|(name, _)| *name == flag).map(|(_, value)| value.as_str());
        let default = || self.flags.iter().find(|(name, ..)| *name == flag).map_or("", |(_, _, default, _)| default);
        given.unwrap_or_else(default)
    }

    fn file(&self) -> Result<PathBuf, SnapshotCommandError> {
        match &self.files[..] {
            [file] => Ok(file.into()),
            files => Err(SnapshotCommandError::Files { verb: self.verb, found: files.len() }),
        }
    }

    fn format(&self) -> Result<Format, SnapshotCommandError> {
        match self.value("write-out") {
            "simple" => Ok(Format::Simple),
            "table" => Ok(Format::Table),
            "json" => Ok(Format::Json),
            "fields" => Ok(Format::Fields),
            found => {
                let expected = "simple, table, json or fields";
                Err(SnapshotCommandError::Value { flag: "write-out", found: found.to_owned(), expected })
            }
        }
    }

    fn number(&self, flag: &'static str) -> Result<u64, SnapshotCommandError> {
        let found = self.value(flag);
        let wrong = |_| SnapshotCommandError::Value { flag, found: found.to_owned(), expected: "a whole number" };
        if found.is_empty() && !self.given.iter().any(|(name, _)| *name == flag) {
            return Ok(0);
        }
        found.parse().map_err(wrong)
    }

    fn is_set(&self, flag: &'static str) -> Result<bool, SnapshotCommandError> {
        match self.value(flag) {
            "" | "false" | "0" => Ok(false),
            "true" | "1" => Ok(true),
            found => Err(SnapshotCommandError::Value { flag, found: found.to_owned(), expected: "true or false" }),
        }
    }

    fn restoring(&self) -> Result<Restoring, SnapshotCommandError> {
        let file = self.file()?;
        self.number("initial-memory-map-size")?;
        let (bump, is_marked) = (self.number("bump-revision")?, self.is_set("mark-compacted")?);
        if (bump > 0) != is_marked {
            return Err(SnapshotCommandError::BumpAlone);
        }
        let hash_check = if self.is_set("skip-hash-check")? { HashCheck::Skipped } else { HashCheck::Done };
        // Judged as the flags of the member that will start from it.
        let names = ["name", "data-dir", "initial-cluster", "initial-cluster-token", "initial-advertise-peer-urls"];
        let flags = names.iter().map(|name| (name, self.value(name))).filter(|(_, value)| !value.is_empty());
        let config = Config::read(flags.map(|(name, value)| format!("--{name}={value}")), [], FEATURES)?;
        config.check_first_start()?;
        Ok(Restoring { file, hash_check, bump, config })
    }
}

#[cfg(test)]
#[path = "command_test.rs"]
mod tests;

//! Resource limits of a member's process (getrlimit(2)): what it had before it was stopped, and what it is started with.
//!
//! A process takes its limits from whoever starts it. Whoever starts the agent may have lower ones than the member had:
//! with a low `ulimit -f` the kernel kills each member as soon as one of its files grows, long after its step has ended
//! well. So a member gets at least what it had. That is read off `/proc/<pid>/limits` before the stop and kept in the state
//! directory, as the kernel printed it. Where it is not known, the limits that end a process, or keep memory from it, are
//! lifted.

use std::{
    fmt, fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::host::{
    files::durable::{self, Access, At, FileError},
    runtime::launch::node_file,
};

/// Each limit: its name in `/proc/<pid>/limits`, and as an option of prlimit(1).
const KINDS: [(&str, &str, Resource); 16] = [
    ("Max cpu time", "cpu", Resource::Cpu),
    ("Max file size", "fsize", Resource::Fsize),
    ("Max data size", "data", Resource::Data),
    ("Max stack size", "stack", Resource::Stack),
    ("Max core file size", "core", Resource::Core),
    ("Max resident set", "rss", Resource::Rss),
    ("Max processes", "nproc", Resource::Nproc),
    ("Max open files", "nofile", Resource::Nofile),
    ("Max locked memory", "memlock", Resource::Memlock),
    ("Max address space", "as", Resource::As),
    ("Max file locks", "locks", Resource::Locks),
    ("Max pending signals", "sigpending", Resource::Sigpending),
    ("Max msgqueue size", "msgqueue", Resource::Msgqueue),
    ("Max nice priority", "nice", Resource::Nice),
    ("Max realtime priority", "rtprio", Resource::Rtprio),
    ("Max realtime timeout", "rttime", Resource::Rttime),
];
/// Those that end a process, or keep memory from it.
const DEADLY: [&str; 4] = ["cpu", "fsize", "data", "as"];
/// Those without which it is worse off: connections and threads.
const NEEDED: [&str; 2] = ["nofile", "nproc"];

/// One limit; `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    name: &'static str,
    option: &'static str,
    resource: Resource,
    soft: Option<u64>,
    hard: Option<u64>,
}

/// The least that a node is to have: the limits of its process as the kernel printed them; `None` where no agent has seen it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits(Option<String>);

/// A limit that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error(
    "it would have {name} {has}, and {} {wanted}; start the agent from a shell that has that, or raise it there, as root: \
     prlimit --pid $$ --{option}={wanted}",
    if *is_known { "it had" } else { "what it had is not known: to be safe it takes" }
)]
pub(crate) struct LimitError {
    name: &'static str,
    option: &'static str,
    has: Bounds,
    wanted: Bounds,
    is_known: bool,
    source: io::Error,
}

/// Soft and hard, as prlimit(1) takes them.
#[derive(Debug)]
struct Bounds(Option<u64>, Option<u64>);

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |bound: Option<u64>| bound.map_or_else(|| "unlimited".to_owned(), |bound| bound.to_string());
        write!(f, "{}:{}", word(self.0), word(self.1))
    }
}

/// Keeps the limits of a process that runs as this node.
///
/// # Errors
/// They could not be read, or not written where none are kept yet: older ones are good enough.
pub(crate) fn keep(nodes: &Path, name: &str, pid: u32) -> Result<(), FileError> {
    let from = PathBuf::from(format!("/proc/{pid}/limits"));
    let found = match fs::read(&from) {
        // It has ended.
        Err(error) if error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(nix::libc::ESRCH) => {
            return Ok(());
        }
        found => found.at("read", &from)?,
    };
    let kept = node_file(nodes, name, "limits");
    let has = durable::read_if_there(&kept)?;
    match has.as_deref() {
        Some(has) if has == found => Ok(()),
        has => durable::write(&kept, &found, &Access::PRIVATE).or_else(|error| has.map(drop).ok_or(error)),
    }
}

impl Limits {
    /// As the process that runs as this node has them, else as they are kept.
    ///
    /// # Errors
    /// What is kept could not be read.
    pub(crate) fn of_node(nodes: &Path, name: &str, running: Option<u32>) -> Result<Self, FileError> {
        if let Some(printed) = running.and_then(|pid| fs::read_to_string(format!("/proc/{pid}/limits")).ok()) {
            return Ok(Self(Some(printed)));
        }
        let kept = durable::read_if_there(&node_file(nodes, name, "limits"))?;
        Ok(Self(kept.map(|kept| String::from_utf8_lossy(&kept).into_owned())))
    }

    fn each(&self) -> Vec<Limit> {
        match &self.0 {
            Some(printed) => parse(printed),
            None => {
                let deadly = KINDS.into_iter().filter(|(_, option, _)| DEADLY.contains(option));
                deadly
                    .map(|(name, option, resource)| Limit { name, option, resource, soft: None, hard: None })
                    .collect()
            }
        }
    }

    /// Gives this process all of them that it lacks.
    ///
    /// # Errors
    /// The first one that it may not have and that a node needs.
    pub(crate) fn give(&self) -> Result<(), LimitError> {
        self.give_but(|option| DEADLY.contains(&option) || NEEDED.contains(&option))
    }

    /// As [`Limits::give`], for a node that is down: better started with fewer files than not at all.
    ///
    /// # Errors
    /// The first one that it may not have and that may end it.
    pub(crate) fn give_to_start(&self) -> Result<(), LimitError> {
        self.give_but(|option| DEADLY.contains(&option))
    }

    /// Of a limit that may be missed it gives as much as may be had.
    fn give_but(&self, must_be_had: impl Fn(&str) -> bool) -> Result<(), LimitError> {
        for limit in self.each() {
            let Err(error) = self.give_one(&limit) else { continue };
            if must_be_had(limit.option) {
                return Err(error);
            }
            let hard = getrlimit(limit.resource).maximum;
            let _ = setrlimit(limit.resource, Rlimit { current: lower(limit.soft, hard), maximum: hard });
        }
        Ok(())
    }

    fn give_one(&self, limit: &Limit) -> Result<(), LimitError> {
        let has = getrlimit(limit.resource);
        let wanted = Rlimit { current: higher(has.current, limit.soft), maximum: higher(has.maximum, limit.hard) };
        if has == wanted {
            return Ok(());
        }
        setrlimit(limit.resource, wanted).map_err(|error| LimitError {
            name: limit.name,
            option: limit.option,
            has: Bounds(has.current, has.maximum),
            wanted: Bounds(wanted.current, wanted.maximum),
            is_known: self.0.is_some(),
            source: error.into(),
        })
    }
}

/// Columns: name, soft limit, hard limit, unit. A line that is none is passed over.
fn parse(printed: &str) -> Vec<Limit> {
    let limit = |line: &str| {
        let (name, option, resource) = KINDS.into_iter().find(|(name, ..)| line.starts_with(name))?;
        let mut bounds = line[name.len()..].split_ascii_whitespace().map(|word| match word {
            "unlimited" => Some(None),
            number => number.parse().ok().map(Some),
        });
        Some(Limit { name, option, resource, soft: bounds.next()??, hard: bounds.next()?? })
    };
    printed.lines().filter_map(limit).collect()
}

fn higher(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.max(other?))
}

fn lower(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.map_or(other, |one| Some(other.map_or(one, |other| one.min(other))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max open files            1024                 524288               files
Max realtime timeout      unlimited            unlimited            us
Max something new         7                    8                    pieces
";

    #[test]
    fn limits_are_read_as_the_kernel_prints_them() {
        let read: Vec<_> = parse(PRINTED).iter().map(|limit| (limit.option, limit.soft, limit.hard)).collect();
        assert_eq!(read, [("cpu", None, None), ("nofile", Some(1024), Some(524_288)), ("rttime", None, None)]);
        for bad in ["", "Max cpu time", "Max cpu time  x  y", "Max cpu time  1"] {
            assert_eq!(parse(bad), Vec::new(), "{bad}");
        }
        // All that this kernel has.
        assert_eq!(parse(&fs::read_to_string("/proc/self/limits").unwrap()).len(), KINDS.len());
    }

    #[test]
    fn none_is_the_highest() {
        for (one, other, most, least) in
            [(None, Some(7), None, Some(7)), (Some(7), Some(8), Some(8), Some(7)), (None, None, None, None)]
        {
            assert_eq!((higher(one, other), lower(one, other)), (most, least));
            assert_eq!((higher(other, one), lower(other, one)), (most, least));
        }
    }

    #[test]
    fn what_is_kept_is_that_of_the_process_or_else_nothing_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let of_node = |pid| Limits::of_node(folder.path(), "a", pid).unwrap();
        let unknown: Vec<_> = of_node(None).each().iter().map(|limit| limit.option).collect();
        assert_eq!(unknown, ["cpu", "fsize", "data", "as"]);
        let own = std::process::id();
        let printed = of_node(Some(own));
        assert_eq!(printed.each().len(), KINDS.len());
        keep(folder.path(), "a", own).unwrap();
        assert_eq!(of_node(None), printed);
        // A process that has ended takes nothing away.
        keep(folder.path(), "a", u32::MAX).unwrap();
        assert_eq!(of_node(Some(u32::MAX)), printed);
    }
}

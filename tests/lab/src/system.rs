//! The two systems that Baton is shown on, and a release of either on this machine.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use clap::ValueEnum;
use proto::Release;
use serde::{Deserialize, Serialize};

use crate::Error;

/// What members are. Both speak one protocol and take one set of flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// The bundled node, built by scripts/build-releases.
    Node,
    /// Real etcd, fetched by scripts/fetch-etcd.
    Etcd,
}

impl System {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Node, Self::Etcd];

    /// The name of its executable, which is also how it calls itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Etcd => "etcd",
        }
    }

    /// The minors of the main job: from the first that there is to the next.
    pub fn main_job(self) -> (&'static str, &'static str) {
        match self {
            Self::Node => ("3.5", "3.6"),
            Self::Etcd => ("3.4", "3.5"),
        }
    }

    /// The minor after those of the main job.
    pub fn too_new(self) -> &'static str {
        match self {
            Self::Node => "3.7",
            Self::Etcd => "3.6",
        }
    }

    /// A release that the playbooks of scenarios do not allow: of etcd's an early patch of the minor in question, of
    /// the node's, which have one release a minor, the one after.
    pub fn unwanted(self) -> &'static str {
        match self {
            Self::Node => self.too_new(),
            Self::Etcd => "3.5.1",
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One release of a system on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// Of which system.
    pub system: System,
    /// What it says it is.
    pub release: Release,
    /// The folder with its executable, and with etcdctl where it is etcd's.
    pub bin: PathBuf,
}

impl Build {
    /// The release whose executable lies in this folder.
    ///
    /// # Errors
    /// It does not run, or does not say what it is.
    pub fn of(system: System, bin: &Path) -> Result<Self, Error> {
        Ok(Self { system, release: said_by(&bin.join(system.name()))?, bin: bin.into() })
    }

    /// The server.
    pub fn executable(&self) -> PathBuf {
        self.bin.join(self.system.name())
    }
}

/// `etcd 3.5.30`, as people say it.
impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.system, self.release)
    }
}

/// The release that an executable of either system says it is: `etcd Version: 3.5.30`, `node Version: 3.5.0`.
///
/// # Errors
/// It does not run, or says nothing of the kind.
pub fn said_by(executable: &Path) -> Result<Release, Error> {
    let done = Command::new(executable)
        .arg("--version")
        .output()
        .map_err(|error| format!("{}: {error}", executable.display()))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let version = text.lines().find_map(|line| {
        let (name, version) = line.split_once(" Version: ")?;
        System::ALL.iter().any(|system| system.name() == name).then_some(version)
    });
    Ok(version.ok_or_else(|| format!("{} --version said {text:?}", executable.display()))?.trim().parse()?)
}

//! The two systems that Baton is shown on, and where a release of either is on this machine.

use std::{
    env, fmt,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
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

    /// The script that has its releases, and prints the folder of each.
    fn script(self) -> &'static str {
        match self {
            Self::Node => "build-releases",
            Self::Etcd => "fetch-etcd",
        }
    }

    /// `BATON_ETCD_3_5`, or `BATON_NO_ETCD_3_5` with `NO_` before the name.
    fn variable(self, prefix: &str, version: &str) -> String {
        format!("BATON_{prefix}{}_{}", self.name().to_uppercase(), version.replace('.', "_"))
    }

    /// Why `scripts/test` found that this release can't be had here, if it did.
    pub fn why_not(self, version: &str) -> Option<String> {
        env::var(self.variable("NO_", version)).ok()
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
    /// The release for `3.5` (the patch that Baton is tested with) or `3.5.30`: from the folder that
    /// `BATON_ETCD_3_5` or `BATON_NODE_3_5` names, else from the system's script.
    ///
    /// # Errors
    /// It can't be had; the text says why.
    pub fn get(system: System, version: &str) -> Result<Self, Error> {
        let bin = match env::var_os(system.variable("", version)) {
            Some(bin) => PathBuf::from(bin),
            None => folder(system, version)?,
        };
        Ok(Self { system, release: said_by(&bin.join(system.name()))?, bin })
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

fn folder(system: System, version: &str) -> Result<PathBuf, Error> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(system.script());
    let mut child = Command::new(script).arg(version).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut said = Vec::new();
    for line in child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).lines()) {
        // Passed on at once: a build takes minutes.
        let line = line?;
        eprintln!("{line}");
        said.push(line);
    }
    let done = child.wait_with_output()?;
    match String::from_utf8_lossy(&done.stdout).trim() {
        bin if done.status.success() => Ok(bin.into()),
        _ => Err(said.join("\n").trim_start_matches("error: ").into()),
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

/// One test of each scenario that is named, on each system: `node::NAME` and `etcd::NAME`.
///
/// A scenario is an `async fn NAME(system: System)` beside the table. What is written before its name, such as
/// `#[ignore = "slow: why"]`, counts on both systems; behind `etcd`, on that one alone.
#[macro_export]
macro_rules! on_both {
    ($($(#[$both:meta])* $scenario:ident $(, etcd #[$etcd:meta])?;)+) => {
        mod node {
            $(
                $(#[$both])*
                #[tokio::test(flavor = "multi_thread")]
                async fn $scenario() {
                    super::$scenario($crate::system::System::Node).await;
                }
            )+
        }

        mod etcd {
            $(
                $(#[$both])*
                $(#[$etcd])?
                #[tokio::test(flavor = "multi_thread")]
                async fn $scenario() {
                    super::$scenario($crate::system::System::Etcd).await;
                }
            )+
        }
    };
}

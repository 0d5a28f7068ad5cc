//! Real etcd: where a release's executables are, and the flags a member is started with.

use std::{
    env,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use proto::Release;

use crate::Error;

/// One release of etcd on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etcd {
    /// What it says it is.
    pub release: Release,
    /// The folder with etcd and etcdctl.
    pub bin: PathBuf,
}

impl Etcd {
    /// The release for `3.5` (the patch that Baton is tested with) or `3.5.30`: from the folder that
    /// `BATON_ETCD_3_5` names, else from `scripts/fetch-etcd`.
    ///
    /// # Errors
    /// It can't be had; the text says why.
    pub fn get(version: &str) -> Result<Self, Error> {
        let bin = match env::var_os(format!("BATON_ETCD_{}", version.replace('.', "_"))) {
            Some(bin) => PathBuf::from(bin),
            None => fetch(version)?,
        };
        Ok(Self { release: said_by(&bin.join("etcd"))?, bin })
    }

    /// The server.
    pub fn executable(&self) -> PathBuf {
        self.bin.join("etcd")
    }
}

fn fetch(version: &str) -> Result<PathBuf, Error> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/fetch-etcd");
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

/// The release that an etcd executable says it is.
///
/// # Errors
/// It does not run, or says nothing of the kind.
pub fn said_by(executable: &Path) -> Result<Release, Error> {
    let done = Command::new(executable)
        .arg("--version")
        .output()
        .map_err(|error| format!("{}: {error}", executable.display()))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let version = text.lines().find_map(|line| line.strip_prefix("etcd Version: "));
    Ok(version.ok_or_else(|| format!("{} --version said {text:?}", executable.display()))?.trim().parse()?)
}

//! Where a release of either system is on this machine: what `scripts/test` found, else what the system's script has.

use std::{
    env,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    Error,
    system::{Build, System},
};

/// The release for `3.5` (the patch that Baton is tested with) or `3.5.30`: from the folder that `BATON_ETCD_3_5` or
/// `BATON_NODE_3_5` names, else from the system's script.
///
/// # Errors
/// It can't be had; the text says why.
pub fn get(system: System, version: &str) -> Result<Build, Error> {
    let bin = match env::var_os(variable(system, "", version)) {
        Some(bin) => PathBuf::from(bin),
        None => folder(system, version)?,
    };
    Build::of(system, &bin)
}

/// Why `scripts/test` found that this release can't be had here, if it did.
pub fn why_not(system: System, version: &str) -> Option<String> {
    env::var(variable(system, "NO_", version)).ok()
}

/// `BATON_ETCD_3_5`, or `BATON_NO_ETCD_3_5` with `NO_` before the name.
fn variable(system: System, prefix: &str, version: &str) -> String {
    format!("BATON_{prefix}{}_{}", system.name().to_uppercase(), version.replace('.', "_"))
}

/// The script that has its releases, and prints the folder of each.
fn script(system: System) -> &'static str {
    match system {
        System::Node => "build-releases",
        System::Etcd => "fetch-etcd",
    }
}

fn folder(system: System, version: &str) -> Result<PathBuf, Error> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(script(system));
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

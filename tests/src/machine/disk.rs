//! The disk of a host: a layer of its own over the disk that all share.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::run;
use crate::Error;

/// The shared disk's folder.
///
/// # Errors
/// Hosts cannot be had here; the text says why.
pub(super) fn get() -> Result<PathBuf, Error> {
    if let Some(folder) = env::var_os("BATON_HOSTS") {
        return Ok(folder.into());
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/fetch-hosts");
    let mut child = Command::new(script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut said = Vec::new();
    for line in child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).lines()) {
        // Passed on at once: a build takes a minute.
        let line = line?;
        eprintln!("{line}");
        said.push(line);
    }
    let done = child.wait_with_output()?;
    match String::from_utf8_lossy(&done.stdout).trim() {
        folder if done.status.success() => Ok(folder.into()),
        _ => Err(said.join("\n").into()),
    }
}

/// Mounts a host's disk over the shared one, and returns where.
pub(super) fn mount(shared: &Path, home: &Path) -> Result<PathBuf, Error> {
    for folder in ["upper", "work", "root"] {
        fs::create_dir_all(home.join(folder))?;
    }
    let (root, home) = (home.join("root"), home.display());
    let layers = format!("lowerdir={},upperdir={home}/upper,workdir={home}/work", shared.display());
    run("mount", &["-t", "overlay", "overlay", "-o", &layers, &root.to_string_lossy()])?;
    Ok(root)
}

/// Unmounts whatever is mounted below this folder, the innermost first.
pub(super) fn unmount_below(folder: &Path) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let targets = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    for target in targets.filter(|target| Path::new(target).starts_with(folder)).collect::<Vec<_>>().into_iter().rev() {
        // Lazily: whoever looks into it just now is to keep nothing from its end.
        let _ = run("umount", &["--lazy", target]);
    }
}

//! What scripts fetch or build once: each prints the folder where it is.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::Error;

/// The folder that a script of ours prints.
///
/// # Errors
/// What it fetches can't be had; the text says why.
pub fn by_script(name: &str, arguments: &[&str]) -> Result<PathBuf, Error> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(name);
    let mut child = Command::new(script).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (mut said, mut complaint) = (Vec::new(), Vec::new());
    for line in child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).lines()) {
        let line = line?;
        if line.starts_with("error: ") || !complaint.is_empty() {
            complaint.push(line);
            continue;
        }
        // Passed on at once: a build takes minutes.
        eprintln!("{line}");
        said.push(line);
    }
    let done = child.wait_with_output()?;
    match String::from_utf8_lossy(&done.stdout).trim() {
        folder if done.status.success() => Ok(folder.into()),
        _ if complaint.is_empty() => Err(said.join("\n").into()),
        _ => Err(complaint.join("\n").trim_start_matches("error: ").into()),
    }
}

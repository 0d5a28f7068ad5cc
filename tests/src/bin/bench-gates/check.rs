//! What one look at the gate costs where an entry is applied. It is measured beside the code, in one process.

use std::{path::Path, process::Command};

use tests::Error;

/// The line that the measurement prints.
pub fn figure() -> Result<String, Error> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let mut command = Command::new("cargo");
    command.args(["bench", "--quiet", "--workspace", "--bench", "gate_check", "--manifest-path"]).arg(manifest);
    let done = command.output()?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned().into()),
    }
}

//! etcdctl, as a person types it: of some release, to members of any.

use std::{path::Path, process::Stdio};

use lab::cluster::Layout;
use tokio::process::Command;

/// Before a member that does not answer is an error.
const PATIENCE: &str = "--command-timeout=5s";

/// What it takes to reach these members of a cluster: which they are, and who one is.
pub fn command(tool: &Path, layout: &Layout, endpoints: &[String]) -> Command {
    let mut command = Command::new(tool);
    command.env("ETCDCTL_API", "3").arg(format!("--endpoints={}", endpoints.join(","))).arg(PATIENCE);
    if let Some(files) = &layout.certificates {
        for (flag, file) in [("--cacert", &files.ca), ("--cert", &files.client.cert), ("--key", &files.client.key)] {
            command.arg(flag).arg(file);
        }
    }
    if let Some((user, password)) = &layout.user {
        command.arg(format!("--user={user}:{password}"));
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

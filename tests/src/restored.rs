//! A backup as a person restores it, with the tool that comes with the release.

use std::{
    path::Path,
    process::{Command, Output},
};

use crate::{
    case::Case,
    system::{Build, System},
};

/// Restores it into this folder, for a cluster of one. What etcd 3.4 has saved is restored by a later release's tool.
///
/// # Panics
/// The tool is not there.
pub fn restored(case: &Case, by: &Build, file: &Path, to: &Path) -> Output {
    let mut command = match by.system {
        System::Etcd => Command::new(by.bin.join("etcdutl")),
        System::Node => Command::new(case.member(0).binary()),
    };
    command.args(["snapshot", "restore"]).arg(file).arg("--data-dir").arg(to);
    command.args([
        "--name=a",
        "--initial-cluster=a=http://127.0.0.1:1",
        "--initial-advertise-peer-urls=http://127.0.0.1:1",
    ]);
    command.output().expect("it runs")
}

//! `agent matrix` as a person or CI types it: plans that pass, one that fails and is made smaller, and mistakes.
//!
//! `scripts/soak-matrix` runs more plans than there is time for here.

#![allow(clippy::panic, reason = "a test that cannot go on fails")]

mod failing;
mod mistakes;
mod passing;

use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

use tests::system::{Build, System};

/// Writes a matrix of these releases and paths.
fn write(file: &Path, system: System, releases: &[(&str, &Path)], paths: &[&str], faults: &str) {
    let mut text = format!("apiVersion: baton/v1\nkind: Matrix\nname: test\nsystems:\n  {system}:\n    releases:\n");
    for (release, source) in releases {
        writeln!(text, "      {release}: {{ source: {source:?} }}").expect("a text grows");
    }
    writeln!(text, "    paths: {paths:?}\nsizes: [3]\nfaults: [{faults}]").expect("a text grows");
    fs::write(file, text).expect("written");
}

/// A matrix of every path between these builds, up and down where there is a way.
fn of_builds(file: &Path, builds: &[Build], faults: &str) {
    let releases: Vec<_> = builds.iter().map(|build| (build.release.to_string(), build.executable())).collect();
    let listed: Vec<_> = releases.iter().map(|(release, source)| (release.as_str(), source.as_path())).collect();
    let up = releases.windows(2).map(|pair| format!("{} -> {}", pair[0].0, pair[1].0));
    let down = releases.windows(2).map(|pair| format!("{} -> {}", pair[1].0, pair[0].0));
    let paths: Vec<_> = up.chain(down.filter(|path| !path.ends_with(" 3.4.23"))).collect();
    let paths: Vec<_> = paths.iter().map(String::as_str).collect();
    write(file, builds[0].system, &listed, &paths, faults);
}

/// Runs `agent matrix FILE …` to its end.
fn matrix(file: &Path, more: &[&str]) -> Output {
    let agent = tests::agent::executable().expect("an agent");
    Command::new(agent).arg("matrix").arg(file).args(more).output().expect("it runs")
}

/// The same where `strace` may trace nothing, as in many a container. Of all that runs it alone is traced: a member would be
/// stopped by its tracer now and then, and be counted as down.
fn matrix_without_ptrace(file: &Path, home: &Path, more: &[&str]) -> Output {
    let path = std::env::var("PATH").expect("a path");
    let real = std::env::split_paths(&path).map(|folder| folder.join("strace")).find(|strace| strace.exists());
    let real = real.expect("strace is installed").display().to_string();
    let script = home.join("strace");
    let refused = "-f -q --seccomp-bpf -e trace=ptrace -e inject=ptrace:error=EPERM -o /dev/null";
    fs::write(&script, format!("#!/bin/sh\nexec {real} {refused} -- {real} \"$@\"\n")).expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("made executable");
    let agent = tests::agent::executable().expect("an agent");
    let mut matrix = Command::new(agent);
    matrix.env("PATH", format!("{}:{path}", home.display()));
    matrix.arg("matrix").arg(file).args(more).output().expect("it runs")
}

/// Everything that it said.
fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
}

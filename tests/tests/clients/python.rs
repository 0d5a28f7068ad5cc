//! A client in Python, from PyPI.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use tests::{
    cluster::{Cluster, Spec},
    on_both,
    skip::{build_or_skip, skip},
    system::System,
};

on_both! {
    a_program_in_python_finds_what_it_expects;
}

/// The client and what it needs, each pinned.
const PACKAGES: [&str; 4] = ["aetcd==1.0.0", "grpcio==1.85.1", "protobuf==7.36.2", "typing_extensions==4.16.0"];

async fn a_program_in_python_finds_what_it_expects(system: System) {
    let Some(build) = build_or_skip(system, "3.5") else { return };
    let packages = match packages() {
        Ok(packages) => packages,
        Err(why) => return skip(&why),
    };
    let cluster = Cluster::up(&Spec::new(build)).await.unwrap();
    let addresses = cluster.layout.members.iter().map(|member| format!("127.0.0.1:{}", member.client_port));
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/program.py");
    let done = Command::new("python3").arg(program).args(addresses).env("PYTHONPATH", packages).output().unwrap();
    let (said, complained) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(said.trim(), "fine", "{complained}");
}

/// A folder with the packages; they are fetched once. Why not, where there is no pip or no registry.
fn packages() -> Result<PathBuf, String> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
    let home = cache.ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("baton/python");
    let folder = home.join(PACKAGES.join("-").replace("==", "-"));
    if folder.exists() {
        return Ok(folder);
    }
    fs::create_dir_all(&home).map_err(|error| format!("cannot make {}: {error}", home.display()))?;
    let fresh = tempfile::Builder::new().prefix(".partial-").tempdir_in(&home).map_err(|error| error.to_string())?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(fresh.path()).args(PACKAGES);
    let done = pip.output().map_err(|error| format!("python3 does not run: {error}"))?;
    if !done.status.success() {
        let complained = String::from_utf8_lossy(&done.stderr);
        return Err(format!("pip cannot install aetcd: {}", complained.trim().lines().last().unwrap_or_default()));
    }
    match fs::rename(fresh.path(), &folder) {
        Ok(()) => drop(fresh.keep()),
        // The test on the other system was first.
        Err(_) if folder.exists() => {}
        Err(error) => return Err(format!("cannot name {}: {error}", folder.display())),
    }
    Ok(folder)
}

//! Where a release of either system is on this machine: what `scripts/test` found, else what the system's script has.

use std::{env, path::PathBuf};

use crate::{
    Error, fetched,
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
        None => fetched::by_script(script(system), &[version])?,
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

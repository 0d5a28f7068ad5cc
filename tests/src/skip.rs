//! Tests that cannot run on this machine: they say why, so that nobody takes them for passed.

use std::{env, fs::File, io::Write, thread};

use crate::{
    releases,
    system::{Build, System},
};

/// Notes that the test that calls this was skipped; it returns right after.
///
/// libtest knows no such verdict, so the note goes to the file that `scripts/test` names in `BATON_SKIPS`.
pub fn skip(reason: &str) {
    // libtest names the thread of each test after it.
    let line = format!("{}\t{}\n", thread::current().name().unwrap_or("a test"), reason.replace(['\n', '\t'], " "));
    eprint!("skipped: {line}");
    if let Some(file) =
        env::var_os("BATON_SKIPS").and_then(|path| File::options().create(true).append(true).open(path).ok())
    {
        let _ = (&file).write_all(line.as_bytes());
    }
}

/// This release of a system, or a skip when `scripts/test` found that it can't be had.
///
/// # Panics
/// It can't be had, and nobody said so before: then the test fails rather than pass without having run.
#[allow(clippy::panic)]
pub fn build_or_skip(system: System, version: &str) -> Option<Build> {
    if let Some(reason) = releases::why_not(system, version) {
        skip(&reason);
        return None;
    }
    match releases::get(system, version) {
        Ok(build) => Some(build),
        Err(error) => panic!("{system} {version}: {error}"),
    }
}

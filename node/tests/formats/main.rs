//! What stays between releases: the numbers of what is stored and sent, and a data directory of each release.
//!
//! `../golden/formats-V.txt` has a line for each field, number of an enum and call that release V knows;
//! `../golden/disks/V` is what its executable wrote. Neither is ever written anew: what changes is of a later release, with
//! files of its own.

#![allow(clippy::unwrap_used)]

mod descriptors;
mod disks;
mod wire;

use std::{collections::BTreeSet, fs, path::PathBuf};

/// The releases that are out, in order.
const RELEASES: [&str; 3] = ["3.5.0", "3.6.0", "3.7.0"];

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The lines that release has.
fn formats(release: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(golden(&format!("formats-{release}.txt"))).unwrap();
    text.lines().map(str::to_owned).collect()
}

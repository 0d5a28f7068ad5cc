//! `node/sim/mutants`: `scripts/mutants` is run by hand, and rarely. A change of the code that a mutant is of shows here.

use std::{fs, path::Path, process::Command};

use tests::skip::skip;

#[test]
fn every_mutant_can_be_put_into_the_code_as_it_is() {
    if Command::new("git").arg("--version").output().is_err() {
        return skip("git is missing here");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut patches: Vec<_> = fs::read_dir(root.join("node/sim/mutants"))
        .expect("a folder")
        .map(|entry| entry.expect("listed").path())
        .collect();
    patches.sort();
    assert!(!patches.is_empty());
    for patch in patches {
        let done = Command::new("git")
            .args(["apply", "--check"])
            .arg(patch.canonicalize().expect("a path"))
            .current_dir(&root)
            .output()
            .expect("started");
        assert!(done.status.success(), "{}: {}", patch.display(), String::from_utf8_lossy(&done.stderr));
    }
}

//! `scripts/build-releases`: what it takes, and that it leaves alone what has not changed.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Command, Output},
};

use tests::{
    skip::build_or_skip,
    system::{System, said_by},
};

fn build(words: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/build-releases");
    Command::new(script).args(words).output().expect("the script runs")
}

#[test]
fn what_is_no_release_is_refused_before_anything_is_built() {
    for wrong in ["3.4", "3.5.1", "3", "v3.5.0", "", "--all"] {
        let done = build(&["3.5", wrong]);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.starts_with(&format!("error: `{wrong}` is no ")) && said.lines().count() == 1, "{said}");
        assert!(done.stdout.is_empty(), "{done:?}");
    }
    assert!(String::from_utf8_lossy(&build(&["--help"]).stdout).contains("3.5.0 3.6.0 3.7.0"));
}

#[test]
fn a_release_that_has_not_changed_is_not_copied_anew() {
    if build_or_skip(System::Node, "3.6").is_none() {
        return;
    }
    let built = || {
        let done = build(&["3.6"]);
        assert!(done.status.success(), "{done:?}");
        let node = Path::new(String::from_utf8_lossy(&done.stdout).trim()).join("node");
        assert_eq!(said_by(&node).expect("it says").to_string(), "3.6.0");
        let file = fs::metadata(&node).expect("a file");
        (node, file.ino(), file.mtime(), file.mtime_nsec())
    };
    assert_eq!(built(), built());
}

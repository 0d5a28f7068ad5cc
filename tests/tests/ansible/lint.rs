//! `ansible-lint`, as strict as it can be, has nothing to say about the collection.

use std::process::Command;

use crate::play::{ansible_or_skip, collections};

#[test]
fn the_collection_is_clean() {
    let Some(programs) = ansible_or_skip() else { return };
    let home = tempfile::tempdir().unwrap();
    let collections = collections(home.path());
    let collection = home.path().join("copy");
    // It leaves files where it works.
    let from = collections.join("ansible_collections/baton/rollout/.");
    assert!(Command::new("cp").arg("-r").arg(from).arg(&collection).status().unwrap().success());
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut lint = Command::new(programs.join("ansible-lint"));
    lint.args(["--offline", "--strict", "--nocolor"]).current_dir(&collection).env("PATH", path);
    lint.env("HOME", home.path()).env("ANSIBLE_COLLECTIONS_PATH", &collections);
    let done = lint.output().unwrap();
    let said = [done.stdout, done.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    assert!(done.status.success(), "{said}");
    assert!(said.contains("'production' was required, and it passed"), "{said}");
}

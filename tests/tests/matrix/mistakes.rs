//! What cannot be run is refused in one sentence, and nothing is started.

use std::path::Path;

use crate::{matrix, said, write};
use tests::system::System;

#[test]
fn a_matrix_that_cannot_be_is_refused_at_its_place() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("matrix.yaml");
    let releases: [(&str, &Path); 2] = [("3.4.23", "a".as_ref()), ("3.6.14", "b".as_ref())];
    write(&file, System::Etcd, &releases, &["3.4.23 -> 3.6.14"], "none");
    let done = matrix(&file, &[]);
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    for words in ["matrix.yaml:9:13", "leaves out a minor", "expected: a path of one minor"] {
        assert!(said(&done).contains(words), "{}", said(&done));
    }
}

#[test]
fn what_is_no_matrix_is_refused_with_what_to_type_next() {
    let home = tempfile::tempdir().expect("a folder");
    let (half, playbook) = (home.path().join("half.yaml"), home.path().join("playbook.yaml"));
    std::fs::write(&half, "apiVersion: baton/v1\nkind: Matrix\nname: ci\n").expect("written");
    std::fs::write(&playbook, "apiVersion: baton/v1\nkind: Upgrade\n").expect("written");
    for (file, expected) in [
        (half, ""),
        (playbook, ""),
        (home.path().join("nosuch.yaml"), "there is no such file\nexpected: a matrix"),
        (home.path().to_owned(), "this is a folder\nexpected: a matrix"),
    ] {
        let done = matrix(&file, &[]);
        let next = format!("next:  agent matrix {} --list\n", file.display());
        assert_eq!(done.status.code(), Some(2), "{}", said(&done));
        assert!(said(&done).contains(&next) && said(&done).contains(expected), "{}", said(&done));
    }
}

#[test]
fn a_release_that_is_not_there_is_named() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("matrix.yaml");
    let releases: [(&str, &Path); 2] = [("3.5.30", "no-such-etcd".as_ref()), ("3.6.14", "b".as_ref())];
    write(&file, System::Etcd, &releases, &["3.5.30 -> 3.6.14"], "none");
    let done = matrix(&file, &[]);
    assert_eq!(done.status.code(), Some(3), "{}", said(&done));
    assert!(said(&done).contains("etcd 3.5.30") && said(&done).contains("no-such-etcd"), "{}", said(&done));
}

#[test]
fn plans_are_listed_and_none_is_run() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("matrix.yaml");
    let releases: [(&str, &Path); 2] = [("3.5.30", "a".as_ref()), ("3.6.14", "b".as_ref())];
    write(&file, System::Etcd, &releases, &["3.5.30 -> 3.6.14"], "none, mixed");
    let listed = matrix(&file, &["--list", "--seed", "7"]);
    assert_eq!(listed.status.code(), Some(0), "{}", said(&listed));
    assert!(said(&listed).contains("etcd 3.5.30 -> 3.6.14, 3 members, faults: mixed, seed 7"), "{}", said(&listed));
    let one = matrix(&file, &["--list", "--only", "etcd/3.5.30-3.6.14/3/mixed/9"]);
    assert!(said(&one).contains("seed 9"), "a plan by its whole name: {}", said(&one));
    let none = matrix(&file, &["--list", "--only", "consul"]);
    assert_eq!(none.status.code(), Some(2), "{}", said(&none));
}

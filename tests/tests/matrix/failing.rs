//! A release that is not well fails its plan, which is made smaller and can be run again.

use std::fs;

use tests::{
    sick::{self, Illness},
    skip::build_or_skip,
    system::System,
};

use crate::{matrix, said, write};

#[test]
fn a_release_that_dies_is_found_and_the_smallest_plan_that_fails_is_named() {
    let Some(from) = build_or_skip(System::Node, "3.5") else { return };
    let Some(to) = build_or_skip(System::Node, "3.6") else { return };
    let home = tempfile::tempdir().expect("a folder");
    let bad = home.path().join("bad");
    fs::create_dir(&bad).expect("a folder");
    sick::make(env!("CARGO_BIN_EXE_sick-member").as_ref(), &to, Illness::Exits, &bad.join("node")).expect("made");
    let file = home.path().join("matrix.yaml");
    write(&file, System::Node, &[("3.5.0", &from.bin), ("3.6.0", &bad)], &["3.5.0 -> 3.6.0"], "none");
    let [junit, html, dir] = ["junit.xml", "grid.html", "runs"].map(|name| home.path().join(name));
    let [out, page, runs] = [&junit, &html, &dir].map(|path| path.to_string_lossy().into_owned());

    let done = matrix(&file, &["--output", "json", "--junit", &out, "--html", &page, "--dir", &runs]);
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    let result: serde_json::Value = serde_json::from_slice(&done.stdout).expect("one object");
    assert_eq!(result["reason"], "matrix_failed");
    let failure = &result["plans"][0]["failure"];
    assert!(failure["why"].as_str().is_some_and(|why| why.contains("put_back")), "{failure}");
    assert_eq!(failure["before"][0]["runs"], "3.5.0", "{failure}");
    let keep = failure["smallest"]["keep"].as_array().expect("a smaller plan");
    assert_eq!(keep.len(), 2, "the start, and the step that fails: {failure}");
    for (file, wanted) in [(&junit, "<failure "), (&html, "class=\"failed\"")] {
        assert!(fs::read_to_string(file).expect("written").contains(wanted));
    }
    let logs = failure["logs"].as_str().expect("a folder");
    assert!(fs::read_dir(logs).expect("it is kept").count() > 3);

    let keep: Vec<_> = keep.iter().filter_map(|id| id.as_str()).collect();
    let id = result["plans"][0]["id"].as_str().expect("a name");
    let again = matrix(&file, &["--only", id, "--keep", &keep.join(","), "--no-shrink"]);
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
    assert!(said(&again).contains("put_back"), "{}", said(&again));
}

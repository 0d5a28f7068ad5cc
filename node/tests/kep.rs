//! The tables of checks are whole, the KEP's and the agent's, and every test that they name is there.

#![allow(clippy::unwrap_used)]

use std::{collections::BTreeSet, fs, path::Path};

/// How many checks there are of each kind; of L those that are the node's.
const NUMBERED: [(&str, u32); 4] = [("K", 45), ("D", 12), ("J", 8), ("A", 25)];
const L: [u32; 10] = [1, 2, 6, 7, 8, 9, 10, 11, 20, 21];
/// Of these the agent has its part, and all of Q.
const AGENT_L: [u32; 18] = [1, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21];
const Q: u32 = 25;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The names of all tests of the workspace.
fn tests() -> BTreeSet<String> {
    let (mut names, mut folders) =
        (BTreeSet::new(), ["node", "agent", "tests", "proto"].map(|name| root().join(name)).to_vec());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let (mut is_test, mut is_table) = (false, false);
                for line in text.lines().map(str::trim) {
                    // A scenario of both systems (`tests/src/on_both.rs`), or a search of the model checker.
                    is_table = (is_table && line != "}") || ["on_both! {", "sound! {", "without! {"].contains(&line);
                    if is_table && line.starts_with(|first: char| first.is_ascii_lowercase()) {
                        names.insert(line.split([',', ';', ':']).next().unwrap().to_owned());
                    }
                    match line.split_once("fn ") {
                        Some((_, name)) if is_test => {
                            names.insert(name.split('(').next().unwrap().to_owned());
                            is_test = false;
                        }
                        _ => is_test |= line == "#[test]" || line.starts_with("#[tokio::test"),
                    }
                }
            }
        }
    }
    names
}

fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The ids of this table's rows.
fn rows_of(path: &str, tests: &BTreeSet<String>) -> BTreeSet<String> {
    let table = fs::read_to_string(root().join(path)).unwrap();
    let rows = table.lines().filter_map(|line| {
        let cells: Vec<_> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
        (cells[0].contains('-') && !cells[0].starts_with("--")).then_some(cells)
    });
    let mut found = BTreeSet::new();
    for cells in rows {
        let [id, _, state, place, named] = <[&str; 5]>::try_from(cells).unwrap();
        assert!(found.insert(id.to_owned()), "{id} stands twice");
        for name in quoted(named) {
            assert!(tests.contains(name), "{id} names a test that is not there: {name}");
        }
        for path in quoted(place) {
            assert!(root().join(path).exists(), "{id} names a file that is not there: {path}");
        }
        let is_open = ["partly", "not yet", "not decided"].iter().any(|open| state.starts_with(open));
        assert!(
            is_open || !quoted(named).is_empty(),
            "{id} is said to be done, and no test would see it if it were not"
        );
    }
    found
}

#[test]
fn each_check_has_its_row_and_each_test_that_a_row_names_is_there() {
    let tests = tests();
    assert!(tests.len() > 500, "this test reads the tests: {}", tests.len());
    let id = |kind: &'static str| move |number: u32| format!("{kind}-{number:02}");
    let kep = NUMBERED.iter().flat_map(|(kind, count)| (1..=*count).map(id(kind))).chain(L.map(id("L")));
    let agent = AGENT_L.into_iter().map(id("L")).chain((1..=Q).map(id("Q")));
    assert_eq!(rows_of("node/KEP-4647.md", &tests), kep.collect());
    assert_eq!(rows_of("agent/QUORUM.md", &tests), agent.collect());
}

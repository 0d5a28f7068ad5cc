//! The texts beside the code stay true: the README's table of reasons, the map's paths, the arrows between
//! rooms.

#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use agent::report::reason;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

#[test]
fn the_readme_has_the_table_of_reasons() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let table = reason::markdown();
    assert!(readme.contains(table.trim()), "README.md should hold this table:\n{table}");
}

#[test]
fn the_map_names_only_what_exists() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let named = map.split('`').skip(1).step_by(2).filter(|text| {
        let is_path = text.contains('/') && !text.contains([' ', '<', '{', '*']) && !text.starts_with('/');
        is_path && !text.starts_with("agents/") && !text.starts_with("lost/")
    });
    let missing: Vec<&str> =
        named.filter(|path| !root().join(path).exists() && !root().join("agent/src").join(path).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what is not there: {missing:?}");
}

/// Which rooms of the agent a room uses, tests aside.
fn uses(room: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root().join("agent/src").join(room)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.to_string_lossy().ends_with("_test.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let shipped = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                for (at, _) in shipped.match_indices("crate::") {
                    found.extend(rooms_after(&shipped[at + "crate::".len()..]));
                }
            }
        }
    }
    found.remove(room);
    found
}

/// The rooms in `observe::…` or `{ host::…, observe::… }`.
fn rooms_after(text: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = text.strip_prefix('{') else { return vec![word(text)] };
    let (mut depth, mut rooms, mut is_start) = (0, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_start = true,
            c if is_start && !c.is_whitespace() => {
                rooms.push(word(&group[at..]));
                is_start = false;
            }
            _ => {}
        }
    }
    rooms
}

#[test]
fn no_arrow_between_rooms_turns() {
    // `rollout` holds data (keys, txn), the machine, and the way to the store: only the last looks at `observe`.
    for (room, allowed) in [
        ("playbook", &["sha256"][..]),
        ("journal", &["rollout", "host"][..]),
        ("plan", &["observe", "rollout", "journal"][..]),
        ("observe", &["playbook"][..]),
        ("host", &["rollout", "guarded", "sha256", "boot_clock", "calendar", "words"][..]),
        ("rollout", &["observe", "plan", "journal", "boot_clock"][..]),
        ("matrix", &["playbook", "words"][..]),
        ("report", &["guarded", "observe", "plan", "playbook", "rollout", "journal", "calendar", "words"][..]),
    ] {
        let allowed: BTreeSet<String> = allowed.iter().map(|room| (*room).to_owned()).collect();
        let turned: Vec<String> = uses(room).difference(&allowed).cloned().collect();
        assert!(turned.is_empty(), "{room} should not use {turned:?}");
    }
    for room in ["playbook", "observe", "plan", "rollout", "journal", "host", "report", "execute", "matrix"] {
        assert!(!uses(room).contains("command"), "{room} uses command");
        assert!(room == "matrix" || !uses(room).contains("matrix"), "{room} uses matrix");
    }
}

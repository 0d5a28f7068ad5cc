//! The rooms of the node stay what the map says: each uses only what lies below it, and no two use each other.

#![allow(clippy::unwrap_used)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// From the ground up. A room may use what stands before it.
const ORDER: [&str; 21] = [
    "api_error",
    "features",
    "host",
    "stored",
    "slow",
    "config",
    "logging",
    "lease",
    "mvcc",
    "cluster",
    "entry",
    "state",
    "identity",
    "restore",
    "machine",
    "migrate",
    "transport",
    "peer",
    "member",
    "serve",
    "process",
];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every room, a folder or a file of its own, with what it uses of the others; tests aside.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    let mut rooms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut folders = vec![sources()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") && !name.ends_with("_test.rs") {
                let inside = path.strip_prefix(sources()).unwrap();
                let room = inside.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_owned();
                let text = fs::read_to_string(&path).unwrap();
                let shipped = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                let used = rooms.entry(room).or_default();
                shipped
                    .match_indices("crate::")
                    .for_each(|(at, found)| used.extend(named(&shipped[at + found.len()..])));
            }
        }
    }
    for root in ["lib", "main"] {
        rooms.remove(root);
    }
    for (room, used) in &mut rooms {
        used.remove(room);
    }
    rooms
}

/// The rooms in `state::…` or `{entry::…, state::…}`.
fn named(text: &str) -> Vec<String> {
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
fn a_room_uses_only_what_lies_below_it() {
    let rooms = uses();
    let named: BTreeSet<&str> = rooms.keys().map(String::as_str).collect();
    assert_eq!(named, BTreeSet::from(ORDER), "the order names every room once");
    for (height, room) in ORDER.iter().enumerate() {
        let above: Vec<&String> =
            rooms[*room].iter().filter(|used| !ORDER[..height].contains(&used.as_str())).collect();
        assert!(above.is_empty(), "{room} uses {above:?}, which are not below it");
    }
    assert!(rooms["serve"].len() > 4, "this test reads past the imports: {:?}", rooms["serve"]);
}

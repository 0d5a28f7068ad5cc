//! What an agent's journal says to who looks at it from outside.

use std::{fs, path::Path};

/// The name of its last whole entry, behind which a torn one may stand; the header has none.
pub fn last_entry(journal: &Path) -> String {
    let bytes = fs::read(journal).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let record = |line: &str| serde_json::from_str::<serde_json::Value>(line.split_once(' ')?.1).ok();
    let entry = text.lines().rev().find_map(record).unwrap_or_default()["entry"].clone();
    // The action comes first; every one has names of its own.
    let entry = entry.as_object().and_then(|entry| entry.values().next()).cloned().unwrap_or_default();
    match entry.as_object().and_then(|entry| entry.iter().next()) {
        Some((name, direction)) => direction.as_str().map_or(name.clone(), |direction| format!("{name} {direction}")),
        None => entry.as_str().unwrap_or("nothing").to_owned(),
    }
}

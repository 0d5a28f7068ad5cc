//! The texts beside the code stay true: the tables of reasons and roles, the map's paths, the arrows between
//! rooms.

#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use agent::report::{file::metrics, shown::roles, stop::reason};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

#[test]
fn the_exit_codes_have_the_table_of_reasons() {
    let text = fs::read_to_string(root().join("agent/EXIT-CODES.md")).unwrap();
    let table = reason::markdown();
    assert!(text.contains(table.trim()), "agent/EXIT-CODES.md should hold this table:\n{table}");
}

#[test]
fn who_may_do_what_has_the_table_of_roles() {
    let text = fs::read_to_string(root().join("agent/SECURITY.md")).unwrap();
    let table = roles::markdown();
    assert!(text.contains(table.trim()), "agent/SECURITY.md should hold this table:\n{table}");
}

#[test]
fn every_metric_is_in_the_table_of_those_who_watch() {
    let text = fs::read_to_string(root().join("playbooks/monitoring/README.md")).unwrap();
    let table = metrics::markdown();
    assert!(text.contains(table.trim()), "playbooks/monitoring/README.md should hold this table:\n{table}");
    let states = metrics::STATES.map(|state| format!("`{state}`")).join(", ");
    assert!(text.contains(&states), "and these states: {states}");
}

/// A rule or a panel that names what is not there would be silent for ever.
#[test]
fn rules_and_dashboard_name_only_metrics_that_there_are() {
    for file in ["rules.yml", "dashboard.json"] {
        let text = fs::read_to_string(root().join("playbooks/monitoring").join(file)).unwrap();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | ':'));
        let named: BTreeSet<_> = words.filter(|word| word.starts_with("baton_")).collect();
        let known: BTreeSet<_> = metrics::FAMILIES.iter().map(|family| family.name).collect();
        assert!(!named.is_empty() && named.is_subset(&known), "{file}: {:?}", named.difference(&known));
    }
}

/// The words in quotes of a text that are names: of events, of fields.
fn names(text: &str) -> BTreeSet<&str> {
    let is_name = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    text.split('"').skip(1).step_by(2).filter(is_name).collect()
}

/// A reader of events files finds each event and each field where they are told, and the report has words for each event.
#[test]
fn every_event_and_field_is_told_and_has_its_words_in_the_report() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (events, words) = (read("agent/src/event/mod.rs"), read("agent/src/report/page/words.rs"));
    let told = read("agent/EVENTS.md");
    let names = names(events.split("pub fn member").next().unwrap());
    assert!(names.len() > 40 && names.contains("seen"), "{names:?}");
    for name in names {
        assert!(told.contains(&format!("`{name}`")), "agent/EVENTS.md should tell of `{name}`");
        assert!(words.contains(&format!("\"{name}\"")), "the report has no words for `{name}`");
    }
    let lines = [read("agent/src/report/file/event_line.rs"), read("agent/src/report/file/seen.rs")].concat();
    let fields = lines.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(": ")).filter(|(name, kind)| {
        kind.ends_with(',') && !kind.contains('(') && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    });
    let fields: BTreeSet<&str> = fields.map(|(name, _)| name).filter(|name| !["more", "seen"].contains(name)).collect();
    assert!(fields.len() > 30, "{fields:?}");
    for field in fields {
        assert!(told.contains(&format!("`{field}`")), "agent/EVENTS.md should tell of the field `{field}`");
    }
}

/// What the agent asks of a server is said in the table of who may ask it.
#[test]
fn every_call_that_the_agent_makes_is_in_the_table_of_roles() {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    // Of the bundled node alone, which has no users.
    let mut known: BTreeSet<String> = roles::CALLS.iter().map(|call| plain(call.name)).collect();
    known.extend(["featuregatestatus".into(), "list".into()]);
    let mut made = BTreeSet::new();
    for room in ["observe", "store", "execute", "command"] {
        for (path, text) in sources(&root().join("agent/src").join(room)) {
            for (at, _) in text.match_indices("Client::new(") {
                // What is done with a channel or a client besides calls.
                let is_call = |name: &&str| !["clone", "max_decoding_message_size", "build"].contains(name);
                let called = text[at..].split('.').skip(1).filter_map(|part| Some(part.split_once('(')?.0));
                let Some(name) = called.take(4).find(is_call) else { continue };
                assert!(known.contains(&plain(name)), "{}: {name}", path.display());
                made.insert(plain(name));
            }
        }
    }
    assert_eq!(made, known, "the table has what is not asked, or this test reads past it");
}

#[test]
fn the_map_and_the_rules_name_only_what_exists() {
    for text in ["ARCHITECTURE.md", "agent/PROTOCOL.md", "agent/MEMBERS.md", "agent/TRUST.md", "node/INVARIANTS.md"] {
        let map = fs::read_to_string(root().join(text)).unwrap();
        let named = map.split('`').skip(1).step_by(2).filter(|text| {
            let is_path = text.contains('/') && !text.contains([' ', '<', '{', '*']) && !text.starts_with('/');
            is_path && !text.starts_with("agents/") && !text.starts_with("abandoned/")
        });
        let missing: Vec<&str> =
            named.filter(|path| !root().join(path).exists() && !root().join("agent/src").join(path).exists()).collect();
        assert!(missing.is_empty(), "{text} names what is not there: {missing:?}");
    }
}

/// The files of a folder and what they hold, tests aside.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.to_string_lossy().ends_with("_test.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let shipped = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                found.push((path, shipped.to_owned()));
            }
        }
    }
    found
}

/// Every room of the agent: the folders of its sources.
fn rooms() -> Vec<String> {
    let entries = fs::read_dir(root().join("agent/src")).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Which rooms of the agent a room uses, tests aside.
fn uses(room: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, text) in sources(&root().join("agent/src").join(room)) {
        for (at, _) in text.match_indices("crate::") {
            found.extend(rooms_after(&text[at + "crate::".len()..]));
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
    for (room, allowed) in [
        ("hazards", &[][..]),
        ("playbook", &["hazards", "sha256", "regular_file", "visible", "boot_clock", "visible"][..]),
        ("keys", &["sha256", "unknown"][..]),
        ("journal", &["keys", "host", "unknown", "words"][..]),
        ("plan", &["observe", "hazards", "keys", "journal", "unknown"][..]),
        ("observe", &["playbook", "regular_file", "calendar", "sha256", "words"][..]),
        ("store", &["keys", "observe", "boot_clock", "unknown", "words"][..]),
        ("machine", &["keys", "observe", "plan", "journal", "unknown"][..]),
        ("host", &["keys", "guarded", "sha256", "boot_clock", "calendar", "regular_file", "words"][..]),
        ("event", &["observe", "plan", "playbook", "keys", "store", "words"][..]),
        (
            "execute",
            &[
                "event",
                "guarded",
                "hazards",
                "host",
                "journal",
                "keys",
                "machine",
                "observe",
                "plan",
                "playbook",
                "report",
                "store",
                "sha256",
                "regular_file",
                "unknown",
                "words",
                "boot_clock",
                "calendar",
                "visible",
            ][..],
        ),
        (
            "report",
            &[
                "event", "guarded", "hazards", "observe", "plan", "playbook", "keys", "store", "machine", "journal",
                "calendar", "visible", "words",
            ][..],
        ),
    ] {
        let allowed: BTreeSet<String> = allowed.iter().map(|room| (*room).to_owned()).collect();
        let turned: Vec<String> = uses(room).difference(&allowed).cloned().collect();
        assert!(turned.is_empty(), "{room} should not use {turned:?}");
    }
    let rooms = rooms();
    for room in rooms.iter().filter(|room| *room != "command") {
        assert!(!uses(room).contains("command"), "{room} uses command");
    }
}

#[test]
fn no_two_rooms_use_each_other() {
    let rooms = rooms();
    assert!(rooms.len() >= 12, "{rooms:?}");
    let used: Vec<_> = rooms.iter().map(|room| uses(room)).collect();
    for (at, one) in rooms.iter().enumerate() {
        for (other, its) in rooms.iter().zip(&used).skip(at + 1) {
            assert!(!(used[at].contains(other) && its.contains(one)), "{one} and {other} use each other");
        }
    }
}

/// What runs as root on hosts holds nothing that makes clusters, faults or certificates.
#[test]
fn the_shipped_agent_carries_no_test_tools() {
    let manifest = fs::read_to_string(root().join("agent/Cargo.toml")).unwrap();
    let shipped = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let named: BTreeSet<&str> = shipped.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).collect();
    assert!(named.contains("proto"), "{named:?}");
    for tool in ["lab", "matrix", "model", "rcgen", "tests"] {
        assert!(!named.contains(tool), "the agent depends on {tool}");
    }
}

/// Every text for people, and what it links to within the repository.
#[test]
fn no_link_between_texts_is_dead_and_readme_and_map_stay_short() {
    let texts = [
        "README.md",
        "ARCHITECTURE.md",
        "agent/PROTOCOL.md",
        "agent/TRUST.md",
        "agent/GUARD.md",
        "agent/EVENTS.md",
        "agent/RESTORE.md",
        "agent/MEMBERS.md",
        "node/INVARIANTS.md",
        "agent/EXIT-CODES.md",
        "agent/HOSTS.md",
        "agent/SECURITY.md",
        "agent/SYSTEMD.md",
        "node/README.md",
        "playbooks/README.md",
        "playbooks/ansible/README.md",
        "playbooks/systemd/README.md",
        "scripts/BENCHMARKS.md",
        "tests/matrix/README.md",
    ];
    let mut links = 0;
    for name in texts {
        let text = fs::read_to_string(root().join(name)).unwrap();
        let folder = Path::new(name).parent().unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
            links += 1;
            assert!(root().join(folder).join(target).exists(), "{name} links to {target}, which is not there");
        }
    }
    assert!(links > 8, "this test reads past the links");
    for (name, most) in [("README.md", 150), ("ARCHITECTURE.md", 200)] {
        let lines = fs::read_to_string(root().join(name)).unwrap().lines().count();
        assert!(lines <= most, "{name} has {lines} lines; what is more belongs beside what it documents");
    }
}

/// Units, plays and configurations that start an agent: the words are its own.
#[test]
fn every_command_that_is_shipped_can_be_typed() {
    let mut files = vec![root().join("playbooks/ansible/examples/reboot.yml")];
    let mut folders = vec![root().join("playbooks/systemd")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let mut found = 0;
    for file in files {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let Some(at) = words.iter().position(|word| word.ends_with("/bin/agent")) else { continue };
            let typed = words[at..].iter().map(|word| (*word).into());
            let parsed = agent::cli::parse(typed).unwrap_or_else(|error| panic!("{}: {line}: {error}", file.display()));
            assert!(["guard", "adopt"].contains(&parsed.verb.name()), "{line}");
            found += 1;
        }
    }
    assert!(found >= 7, "{found}");
}

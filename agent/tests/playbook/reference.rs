//! The table of fields against the parser, and the schema that is made of it against both.

use std::{fs, path::Path};

use agent::playbook::{
    Playbook,
    reference::{FIELDS, Field, Need, Of, Shape, children, schema},
};
use serde_json::{Map, Value, json};

use super::{REPLACE, RESTART, SCALE, SOUND, parse, without_secrets};

const KINDS: [&str; 5] = ["Upgrade", "Downgrade", "Restart", "Scale", "Replace"];
const RUNTIMES: [&str; 3] = ["process", "command", "systemd"];

fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Whether a field may stand in a playbook of this kind whose nodes have this runtime.
fn belongs(field: &Field, kind: &str, runtime: &str) -> bool {
    match field.of {
        Of::Every => true,
        Of::Kinds(kinds) => kinds.contains(&kind),
        Of::Runtime(of) => of == runtime,
    }
}

/// A group of a playbook made of the table alone: with every field, or only with those that must be there.
fn made(group: Option<&Field>, kind: &str, runtime: &str, is_full: bool) -> Value {
    let rows = children(group.map(|field| field.path)).filter(|row| belongs(row, kind, runtime));
    let rows = rows.filter(|row| !matches!(row.need, Need::Instead(_)));
    let mut made = Map::new();
    for row in rows.filter(|row| is_full || row.is_required_for(kind)) {
        let value = match (row.path, row.shape) {
            ("kind", _) => json!(kind),
            // What the table shows leads up.
            ("from", _) if kind == "Downgrade" => json!(">=3.7, <3.8"),
            ("nodes[].runtime.kind", _) => json!(runtime),
            (_, Shape::Group) => self::made(Some(row), kind, runtime, is_full),
            (_, Shape::Groups(_)) => json!([self::made(Some(row), kind, runtime, is_full)]),
            _ => yaml(row.example),
        };
        made.insert(row.key().into(), value);
    }
    made.into()
}

/// The playbook, whose endpoints go with its certificates where it has some.
fn playbook(kind: &str, runtime: &str, is_full: bool) -> Value {
    let mut made = made(None, kind, runtime, is_full);
    if is_full {
        made["cluster"]["endpoints"] = json!(["https://10.0.0.1:2379"]);
    }
    if matches!(kind, "Restart" | "Scale" | "Replace") && runtime == "process" && !is_full {
        made["nodes"][0]["runtime"]["argv"] = json!(["/opt/etcd"]);
    }
    made
}

fn text(playbook: &Value) -> String {
    serde_yaml::to_string(playbook).unwrap()
}

fn parsed(playbook: &Value) -> Result<Playbook, String> {
    parse(&text(playbook)).map_err(|error| format!("{error}\n{}", text(playbook)))
}

struct Schema(schema::Schema);

impl Schema {
    fn new() -> Self {
        Self(schema::Schema::new(&schema()).unwrap_or_else(|error| panic!("no schema: {error}")))
    }

    fn takes(&self, playbook: &Value) -> Result<(), String> {
        let faults = self.0.faults(playbook);
        if faults.is_empty() { Ok(()) } else { Err(format!("{}\n{}", faults.join("\n"), text(playbook))) }
    }
}

/// Where a field stands, as a pointer into a playbook.
fn pointer(path: &str) -> String {
    format!("/{}", path.replace("[]", ".0").replace('.', "/"))
}

fn each_combination(mut check: impl FnMut(&str, &str)) {
    for kind in KINDS {
        for runtime in RUNTIMES {
            check(kind, runtime);
        }
    }
}

#[test]
fn what_the_table_shows_is_a_playbook_to_parser_and_schema() {
    let schema = Schema::new();
    each_combination(|kind, runtime| {
        for is_full in [true, false] {
            let playbook = playbook(kind, runtime, is_full);
            parsed(&playbook).unwrap_or_else(|error| panic!("{kind} {runtime}: {error}"));
            schema.takes(&playbook).unwrap_or_else(|error| panic!("{kind} {runtime}: {error}"));
        }
    });
}

/// A stranger in each group brings the parser to say which keys it knows there.
#[test]
fn parser_and_table_know_the_same_keys() {
    let schema = Schema::new();
    each_combination(|kind, runtime| {
        let whole = playbook(kind, runtime, true);
        let groups = FIELDS.iter().filter(|field| whole.pointer(&pointer(field.path)).is_some());
        let groups = groups.filter(|field| matches!(field.shape, Shape::Group | Shape::Groups(_)));
        for group in [None].into_iter().chain(groups.map(Some)) {
            let at = match group {
                None => String::new(),
                Some(field) if matches!(field.shape, Shape::Groups(_)) => pointer(field.path) + "/0",
                Some(field) => pointer(field.path),
            };
            let mut wrong = whole.clone();
            wrong.pointer_mut(&at).unwrap()["zzzzzzzzzzzz"] = json!("x");
            let fault = parsed(&wrong).unwrap_err();
            let said = fault.lines().find_map(|line| line.strip_prefix("expected: ")).unwrap();
            let mut known: Vec<_> = said.split('`').skip(1).step_by(2).collect();
            let mut rows: Vec<_> = children(group.map(|field| field.path))
                .filter(|row| group.is_none() || belongs(row, kind, runtime))
                .map(Field::key)
                .collect();
            known.sort_unstable();
            rows.sort_unstable();
            assert_eq!(known, rows, "{kind} {runtime}: {fault}");
            assert!(schema.takes(&wrong).is_err(), "{}", text(&wrong));
        }
    });
}

#[test]
fn what_must_be_there_is_missed_by_parser_and_schema() {
    let schema = Schema::new();
    each_combination(|kind, runtime| {
        let whole = playbook(kind, runtime, true);
        for field in FIELDS.iter().filter(|field| whole.pointer(&pointer(field.path)).is_some()) {
            let path = pointer(field.path);
            let (group, key) = path.rsplit_once('/').unwrap();
            let mut without = whole.clone();
            without.pointer_mut(group).unwrap().as_object_mut().unwrap().remove(key);
            // Certificates go with what they are for, and a template with what it stands for.
            if matches!(field.path, "cluster.tls") {
                without["cluster"]["endpoints"] = json!(["http://10.0.0.1:2379"]);
            }
            if field.path == "nodes[].binary" {
                without["nodes"][0]["runtime"] = json!({ "kind": "process", "argv": ["/opt/etcd"] });
                without.as_object_mut().unwrap().remove("hooks");
            }
            let must = field.is_required_for(kind) || matches!(field.need, Need::Beside(_));
            let (parser, schema) = (parsed(&without), schema.takes(&without));
            assert_eq!(parser.is_err(), must, "{kind} {runtime} without {}: {parser:?}", field.path);
            assert_eq!(schema.is_err(), must, "{kind} {runtime} without {}: {schema:?}", field.path);
        }
    });
}

#[test]
fn one_field_or_another_is_taken_by_parser_and_schema() {
    let schema = Schema::new();
    for field in FIELDS {
        let Need::Instead(other) = field.need else { continue };
        let mut both = playbook("Upgrade", "process", true);
        (both[field.key()], both[other]) = (yaml(field.example), yaml(find(other).example));
        if find(other).example.is_empty() {
            both[other] = made(Some(find(other)), "Upgrade", "process", true);
        }
        assert!(parsed(&both).is_err() && schema.takes(&both).is_err(), "{}", text(&both));
        let mut one = playbook("Upgrade", "process", true);
        one[field.key()] = yaml(field.example);
        one.as_object_mut().unwrap().remove(other);
        // One digest is of one release.
        if let Some(artifact) = one.pointer_mut("/artifact") {
            artifact.as_object_mut().unwrap().remove("sha256");
        }
        parsed(&one).unwrap_or_else(|error| panic!("{error}"));
        schema.takes(&one).unwrap_or_else(|error| panic!("{error}"));
    }
}

fn find(path: &str) -> &'static Field {
    FIELDS.iter().find(|field| field.path == path).unwrap()
}

#[test]
fn what_belongs_to_another_kind_is_refused_by_parser_and_schema() {
    let schema = Schema::new();
    each_combination(|kind, runtime| {
        for field in FIELDS.iter().filter(|field| !belongs(field, kind, runtime)) {
            let mut wrong = playbook(kind, runtime, true);
            let path = pointer(field.path);
            let (group, key) = path.rsplit_once('/').unwrap();
            let value = match field.shape {
                Shape::Group => made(Some(field), KINDS[0], RUNTIMES[0], true),
                Shape::Groups(_) => json!([made(Some(field), KINDS[0], RUNTIMES[0], true)]),
                _ => yaml(field.example),
            };
            let Some(group) = wrong.pointer_mut(group) else { continue };
            group[key] = value;
            assert!(parsed(&wrong).is_err(), "{kind} {runtime} with {}", field.path);
            assert!(schema.takes(&wrong).is_err(), "{kind} {runtime} with {}", field.path);
        }
    });
}

#[test]
fn a_value_of_another_type_is_refused_by_parser_and_schema() {
    let schema = Schema::new();
    for (kind, runtime) in
        [("Upgrade", "process"), ("Restart", "command"), ("Scale", "systemd"), ("Replace", "systemd")]
    {
        let whole = playbook(kind, runtime, true);
        for field in FIELDS.iter().filter(|field| whole.pointer(&pointer(field.path)).is_some()) {
            for other in
                [json!({ "zzzzzzzzzzzz": [] }), json!([[{}]]), json!(true), json!(7), json!("a text\n"), json!(null)]
            {
                let fits = match field.shape {
                    Shape::AsWritten => other.is_boolean() || other.is_number() || other.is_string(),
                    Shape::Word | Shape::Text => other.is_string(),
                    Shape::Path => other.is_string(),
                    Shape::Count(_) => other.is_number(),
                    Shape::Bool => other.is_boolean(),
                    Shape::Requirement => other.is_number(),
                    _ => false,
                };
                let mut wrong = whole.clone();
                *wrong.pointer_mut(&pointer(field.path)).unwrap() = other.clone();
                let (parser, schema) = (parsed(&wrong), schema.takes(&wrong));
                assert_eq!(parser.is_ok(), fits, "{other} at {}: {parser:?}", field.path);
                assert_eq!(schema.is_ok(), fits, "{other} at {}: {schema:?}", field.path);
            }
        }
    }
}

/// Values that a person may well write, each at a field of its shape.
#[test]
fn parser_and_schema_agree_on_how_values_are_written() {
    let schema = Schema::new();
    for (path, right, wrong) in [
        (
            "strategy.soak",
            &["0s", "500ms", "1m30s", "1h1m1s1ms", "700h"][..],
            &["", "10", "10 s", "1.5s", "-1s", "1d", "1s1m", "1m1m", "10S"][..],
        ),
        ("strategy.max_learners", &["1", "9"], &["0", "10", "1.5", "two"]),
        ("strategy.health.timeout", &["1ms", "1h0s"], &["0s", "0h0ms", "00s", "ten"]),
        ("verify.max_db", &["0B", "64KiB", "2GiB"], &["256", "256MB", "1GiB1B", "1.5GiB", "MiB"]),
        (
            "to",
            &["3.6.14", "3.6.0-rc.1", "3.6.0+build.7"],
            &["3.6", "v3.6.14", ">=3.6.14", "3.6.14.1", "latest", " 3.6.14"],
        ),
        (
            "from",
            &[
                ">=3.5.32, <3.6",
                "3.5",
                "^3.5.1",
                "~3.5",
                "=3.5.32",
                ">= 3.5.0 , < 3.6",
                "*",
                "3.*",
                ">=3.7.0-rc.1, <3.8",
            ],
            &["", "  ", "three", ">=", "v3.5", ">=3.5 <3.6", "3.5.1.1", "=>3.5"],
        ),
        (
            "cluster.endpoints",
            &["[\"http://h:1\"]", "[\"http://[::1]:2379/\"]"],
            &[
                "[]",
                "[h:1]",
                "[\"ftp://h:1\"]",
                "[\"http://h\"]",
                "[\"http://h:1/v3\"]",
                "[\"http://me@h:1\"]",
                "[\"http://h:1\", \"http://h:1\"]",
            ],
        ),
        ("cluster.name", &["orders", "\"7\"", "a.b"], &["\"\"", "a/b", "a b", ".", "..", "\"{{node}}\""]),
        (
            "artifact.sha256",
            &["ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef0123456789"],
            &["abc", "x123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0"],
        ),
        (
            "nodes[].runtime.argv",
            &["[etcd, \"\"]", "[\"{{binary}}\"]"],
            &["[]", "etcd --name a", "[\"\"]", "[etcd, 5]", "[etcd, [a]]"],
        ),
        ("nodes[].runtime.env", &["{}", "{ A: \"\" }"], &["{ A: 5 }", "[A=5]", "{ \"A=B\": c }", "{ \"\": c }"]),
        ("nodes[].files", &["[]"], &["[{ path: /a }]", "[{ path: /a, source: b, when: c }]"]),
        ("nodes", &[], &["[]"]),
        ("gates.expect", &["{}", "{ A: false }"], &["{ A: \"on\" }", "[A]"]),
        ("hooks.before_node", &["[]", "[[a], [b, c]]"], &["[a]", "[[]]"]),
        ("strategy.order", &["leader_last"], &["leader_first", "Leader_last"]),
        ("restart.id", &["7", "true", "2026-11-22", "a b"], &["\"\"", "\"  \""]),
        ("members", &["[a]", "[a, b, c]"], &["[]", "[a, a, b]", "[a, \"b c\", d]", "3", "[1, 2, 3]"]),
        ("replace", &["{ member: a, by: b }", "{ member: a, by: a }"], &["{ member: a }", "a", "[a, b]"]),
        (
            "nodes[].peer_urls",
            &["[\"http://h:1\"]", "[\"https://[::1]:2380\", \"http://h:1\"]"],
            &[
                "[]",
                "[h:1]",
                "http://h:1",
                "[\"unix:///a\"]",
                "[\"http://h\"]",
                "[\"http://h:1/\"]",
                "[\"http://h:1/a\"]",
                "[\"http://me@h:1\"]",
                "[\"http://a,b:1\"]",
                "[\"http://h:1\", \"http://h:1\"]",
            ],
        ),
        ("nodes[].data_dir", &["/srv/a", "a"], &["\"\"", "[a]", "\"/srv/{{node}}\""]),
        ("apiVersion", &[], &["apps/v1", "baton/v2"]),
        ("kind", &[], &["upgrade", "Upgrad"]),
    ] {
        for (value, is_right) in right.iter().map(|v| (v, true)).chain(wrong.iter().map(|v| (v, false))) {
            let kind = match path {
                "restart.id" => "Restart",
                "members" => "Scale",
                "replace" => "Replace",
                _ => "Upgrade",
            };
            let mut playbook = playbook(kind, "process", true);
            playbook["strategy"]["stall_timeout"] = json!("720h");
            if path == "cluster.endpoints" || path == "nodes[].runtime.argv" {
                playbook = self::playbook("Restart", "process", false);
            }
            if path == "nodes[].runtime.argv" {
                playbook["nodes"][0]["binary"] = json!("/opt/etcd");
            }
            // In quotes, as a person does where YAML would take it for something else.
            let value = match path {
                "strategy.soak" | "strategy.health.timeout" | "verify.max_db" | "to" | "from" => json!(value),
                _ => yaml(value),
            };
            *playbook.pointer_mut(&pointer(path)).unwrap() = value.clone();
            let (parser, schema) = (parsed(&playbook), schema.takes(&playbook));
            assert_eq!(parser.is_ok(), is_right, "{path}: {value}: {parser:?}");
            assert_eq!(schema.is_ok(), is_right, "{path}: {value}: {schema:?}");
        }
    }
}

#[test]
fn defaults_are_those_of_the_parser() {
    let mut compared = 0;
    each_combination(|kind, runtime| {
        let read = parsed(&playbook(kind, runtime, false)).unwrap();
        let normal = yaml(&read.to_yaml().unwrap());
        for field in FIELDS.iter().filter(|field| belongs(field, kind, runtime)) {
            let Some(default) = field.default else {
                let is_there = normal.pointer(&pointer(field.path)).is_some_and(|value| value.as_object().is_none());
                let is_said = field.is_required_for(kind);
                assert!(!is_there || is_said, "{} has a default that the table does not say", field.path);
                continue;
            };
            let default = default
                .replace("<cluster.name>", &read.cluster.name)
                .replace("<state_dir>", &read.state_dir.to_string_lossy())
                .replace("<nodes[].name>", &read.nodes[0].name);
            assert!(!default.contains('<'), "{default}");
            // A mapping with nothing in it is not printed.
            let printed = normal.pointer(&pointer(field.path)).cloned().unwrap_or(json!({}));
            assert_eq!(printed, yaml(&default), "{kind} {runtime} {}", field.path);
            compared += 1;
        }
    });
    assert!(compared > 60, "{compared}");
}

#[test]
fn the_schema_takes_every_example_and_normal_form() {
    let schema = Schema::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../playbooks");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
    let mut sources: Vec<_> = files.map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(sources.len() >= 4);
    sources.extend([SOUND, RESTART, SCALE, REPLACE].map(str::to_owned));
    for source in sources {
        schema.takes(&yaml(&source)).unwrap_or_else(|error| panic!("{error}"));
        let normal = without_secrets(parse(&source).unwrap()).to_yaml().unwrap();
        schema.takes(&yaml(&normal)).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn the_table_is_whole() {
    for field in FIELDS {
        let is_group = matches!(field.shape, Shape::Group | Shape::Groups(_));
        assert_eq!(field.example.is_empty(), is_group, "{}", field.path);
        assert_eq!(field.children().next().is_some(), is_group, "{}", field.path);
        assert!(field.meaning.ends_with('.') && !field.meaning.contains(". "), "one sentence: {}", field.meaning);
        let same = FIELDS.iter().filter(|other| other.path == field.path);
        assert_eq!(same.count(), 1, "{}", field.path);
        if let Some(parent) = field.parent() {
            assert!(FIELDS.iter().any(|other| other.path == parent), "{} has no group", field.path);
        }
        if let Need::Beside(other) | Need::Unless(other) | Need::Instead(other) = field.need {
            assert!(children(field.parent()).any(|row| row.key() == other), "{}", field.path);
        }
    }
}

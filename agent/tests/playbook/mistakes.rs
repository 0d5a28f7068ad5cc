//! Every class of mistake and the text that a person gets for it. A case is a sound playbook with one edit;
//! `INSTA_UPDATE=always cargo test -p agent --test playbook` writes the texts anew, review reads the diff.

use super::{REPLACE, RESTART, SCALE, SOUND, parse};

/// Compares the texts for `source`, with each `old` replaced by its `new`, with those in `snapshots/`.
fn golden(name: &str, source: &str, edits: &[(&str, &str)]) {
    let texts: Vec<_> = edits.iter().map(|(old, new)| text(source, old, new)).collect();
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(name, texts.join("\n")) });
}

fn text(source: &str, old: &str, new: &str) -> String {
    assert_eq!(source.matches(old).count(), 1, "`{old}` must be in the playbook once");
    match parse(&source.replace(old, new)) {
        Ok(_) => panic!("`{new}` instead of `{old}` was accepted"),
        Err(error) => format!("{error}\n"),
    }
}

#[test]
fn what_is_edited_here_was_sound() {
    for source in [SOUND, RESTART, SCALE, REPLACE] {
        if let Err(error) = parse(source) {
            panic!("{error}");
        }
    }
}

#[test]
fn syntax() {
    golden(
        "syntax",
        SOUND,
        &[
            ("  name: orders\n", "  name: [orders\n"),
            ("  name: orders\n", "\tname: orders\n"),
            ("  name: orders\n", " name: orders\n"),
            ("  name: orders\n", "  name: \"orders\n"),
            ("  name: orders\n", "  name: orders\n  name: payments\n"),
            ("env: { GOGC: \"50\" }", "env: { GOGC: \"50\", A: b, GOGC: \"60\" }"),
            ("  after_node: []\n", "  after_node: []\n---\napiVersion: baton/v1\n"),
            ("  name: orders\n", "  name: !secret orders\n"),
            ("  name: orders\n", "  name: *orders\n"),
            ("  name: orders\n", "  name: &x { a: *x }\n"),
            ("  name: orders\n", "  [name]: orders\n"),
            ("apiVersion:", "%YAML 1.2\n---\napiVersion:"),
        ],
    );
}

#[test]
fn keys() {
    golden(
        "keys",
        SOUND,
        &[
            ("  endpoints:", "  endpoint:"),
            ("  election_timeout:", "  electionTimeout:"),
            ("password_file: password", "password: hunter2"),
            ("  soak: 10s", "  colour: red"),
            ("state_dir: state", "<<: { state_dir: state }"),
            (
                "{ path: /etc/etcd.yaml, source: etcd-3.5.yaml, for: \"<3.6\" }",
                "{ path: /a, source: b, when: \"<3.6\" }",
            ),
            ("  name: orders\n", ""),
            ("  sha256:", "  sha: x\n  sha256:"),
        ],
    );
}

#[test]
fn types() {
    golden(
        "types",
        SOUND,
        &[
            ("  name: orders\n", "  name: 7\n"),
            ("  name: orders\n", "  name: true\n"),
            ("  name: orders\n", "  name:\n"),
            ("  name: orders\n", "  name: \"\"\n"),
            ("  name: orders\n", "  name: [orders]\n"),
            ("  name: orders\n", "  name: a/b\n"),
            ("  name: orders\n", "  name: \"a\\u001b[2Jb\"\n"),
            ("{ GOGC: \"50\" }", "{ GOGC: 50 }"),
            ("{ GOGC: \"50\" }", "[GOGC=50]"),
            ("{ GOGC: \"50\" }", "{ \"A=B\": \"50\" }"),
            ("kill: false", "kill: no"),
            ("kill: false", "kill: \"false\""),
            ("stop: { timeout: 30s, kill: false }", "stop: 30s"),
            ("argv: [\"{{binary}}\", --name, \"{{node}}\"]", "argv: etcd --name orders-1"),
            ("argv: [\"{{binary}}\", --name, \"{{node}}\"]", "argv: []"),
            ("[\"{{binary}}\", --name, \"{{node}}\"]", "[\"\", \"{{binary}}\"]"),
            ("[\"{{binary}}\", --name, \"{{node}}\"]", "[\"{{binary}}\", --snapshot-count, 5]"),
            (
                "gates: { expect: { ClusterLeaseCheckpoint: true } }",
                "gates: { expect: { ClusterLeaseCheckpoint: on } }",
            ),
            ("gates: { expect: { ClusterLeaseCheckpoint: true } }", "gates: { expect: [ClusterLeaseCheckpoint] }"),
            ("  before_node: [[/usr/local/bin/silence, \"{{node}}\"]]", "  before_node: [/usr/local/bin/silence]"),
            ("  user: etcd", "  user: \"a\\0b\""),
        ],
    );
}

#[test]
fn numbers() {
    golden(
        "numbers",
        SOUND,
        &[
            ("soak: 10s", "soak: 10"),
            ("soak: 10s", "soak: 10 s"),
            ("soak: 10s", "soak: 1.5s"),
            ("soak: 10s", "soak: ten seconds"),
            ("soak: 10s", "soak: 10000h"),
            ("soak: 10s", "soak: { timeout: 10s }"),
            ("health: { timeout: 2m }", "health: 2m"),
            ("health: { timeout: 2m }", "health: {}"),
            ("health: { timeout: 2m }", "health: { timeout: 0s }"),
            ("max_db: 256MiB", "max_db: 256"),
            ("max_db: 256MiB", "max_db: 256MB"),
            ("max_db: 256MiB", "max_db: 99999999999GiB"),
            ("order: leader_last", "order: leader_first"),
            ("finalize: auto", "finalize: automatic"),
            ("on_failure: rollback", "on_failure: Rollback"),
            ("on_failure: rollback", "accept_hazards: [floor-63]"),
            ("on_failure: rollback", "accept_hazards: [watch-gaps]"),
            ("on_failure: rollback", "accept_hazards: [hop-too-fast-37]"),
            ("on_failure: rollback", "accept_hazards: floor-36"),
        ],
    );
}

#[test]
fn cluster() {
    golden(
        "cluster",
        SOUND,
        &[
            ("[http://10.0.0.1:2379, http://10.0.0.2:2379]", "[]"),
            ("[http://10.0.0.1:2379, http://10.0.0.2:2379]", "http://10.0.0.1:2379"),
            ("http://10.0.0.2:2379", "10.0.0.2:2379"),
            ("http://10.0.0.2:2379", "grpc://10.0.0.2:2379"),
            ("http://10.0.0.2:2379", "http://10.0.0.2"),
            ("http://10.0.0.2:2379", "\"http://[::1]\""),
            ("http://10.0.0.2:2379", "\"http://2001:db8::1:2379\""),
            ("http://10.0.0.2:2379", "\"http://10.0.0.2:2379,http://10.0.0.3:2379\""),
            ("http://10.0.0.2:2379", "http://10.0.0.2:0"),
            ("http://10.0.0.2:2379", "http://10.0.0.2:2379/v3"),
            ("http://10.0.0.2:2379", "http://me@10.0.0.2:2379"),
            ("http://10.0.0.2:2379", "http://10.0.0.1:2379"),
            ("http://10.0.0.2:2379", "https://10.0.0.2:2379"),
            ("  # no `tls`", "  tls: { ca: ca.pem }"),
            ("  # no `tls`", "  tls: { cert: a.pem, key: a.key }"),
            ("  # no `tls`", "  tls: { ca: ca.pem, cert: a.pem }"),
            ("{ orders-1: http://10.0.0.1:2381 }", "{ orders-1: 10.0.0.1:2381 }"),
            ("{ orders-1: http://10.0.0.1:2381 }", "{ orders-1: https://10.0.0.1:2381 }"),
            ("{ user: root, password_file: password }", "{ user: root }"),
        ],
    );
}

#[test]
fn kind_downgrade() {
    let down = SOUND.replace("kind: Upgrade", "kind: Downgrade").replace("to: 3.6.14", "to: 3.5.32");
    assert!(parse(&down).is_ok());
    golden(
        "kind_downgrade",
        &down,
        &[
            ("to: 3.5.32", "to: 3.4.44"),
            ("to: 3.5.32", "to: 3.6.14"),
            ("kind: Downgrade", "restart: { id: x }\nkind: Downgrade"),
        ],
    );
}

#[test]
fn kind() {
    golden(
        "kind",
        SOUND,
        &[
            ("to: 3.6.14", "to: 3.5.30"),
            ("etcd-v{{version}}.tar.gz", "etcd-v{version}.tar.gz"),
            ("binary: /opt/1/current", "binary: ~/current"),
            ("apiVersion: baton/v1\n", ""),
            ("baton/v1", "apps/v1"),
            ("kind: Upgrade\n", ""),
            ("kind: Upgrade", "kind: upgrade"),
            ("from: \">=3.5.32, <3.6\"\n", ""),
            ("\">=3.5.32, <3.6\"", "three point five"),
            ("\">=3.5.32, <3.6\"", "\"\""),
            ("to: 3.6.14\n", ""),
            ("to: 3.6.14", "to: 3.6"),
            ("to: 3.6.14", "to: \">=3.6.14\""),
            ("to: 3.6.14", "to: v3.6.14"),
            ("to: 3.6.14", "to: latest"),
            ("to: 3.6.14", "to: \"a\\e[2J\\nb\""),
            ("to: 3.6.14\n", "to: 3.6.14\nrestart: { id: OPS-1 }\n"),
            ("kind: Upgrade", "kind: Restart"),
        ],
    );
    let long = format!("restart: {{ id: {} }}", "x".repeat(201));
    golden(
        "kind_restart",
        RESTART,
        &[
            ("restart: { id: OPS-1742 }\n", ""),
            ("restart: { id: OPS-1742 }", "restart: {}"),
            ("restart: { id: OPS-1742 }", "restart: { id: \" \" }"),
            ("restart: { id: OPS-1742 }", &long),
            ("restart: { id: OPS-1742 }", "restart: { id: OPS-1742 }\nto: 3.6.14"),
            ("restart: { id: OPS-1742 }", "restart: { id: OPS-1742 }\nstrategy: { finalize: manual }"),
        ],
    );
}

#[test]
fn members() {
    let all = "members: [orders-1, orders-2, orders-3]";
    golden(
        "kind_scale",
        SCALE,
        &[
            (&format!("{all}\n"), ""),
            (all, "members: []"),
            (all, "members: [orders-1, orders-2]"),
            (all, "members: [orders-1, orders-2, orders-1]"),
            (all, "members: 3"),
            (all, "members: { orders-1: http://10.0.0.1:2380 }"),
            (all, "members: [orders-1, 2, 3]"),
            (all, "members: [orders-1, orders-2, \"a b\"]"),
            (all, &format!("{all}\nto: 3.6.14")),
            (all, &format!("{all}\nreplace: {{ member: orders-1, by: orders-4 }}")),
            (all, &format!("{all}\nstrategy: {{ finalize: manual }}")),
            ("kind: Scale", "kind: Restart"),
            ("kind: Scale", "kind: Scale\nvoters: 3"),
        ],
    );
    let both = "replace: { member: orders-2, by: orders-4 }";
    golden(
        "kind_replace",
        REPLACE,
        &[
            (&format!("{both}\n"), ""),
            (both, "replace: orders-2"),
            (both, "replace: { member: orders-2 }"),
            (both, "replace: { by: orders-4 }"),
            (both, "replace: { member: orders-2, with: orders-4 }"),
            (both, "replace: { member: [orders-2], by: orders-4 }"),
            (both, "replace: { member: orders-2, by: \"{{node}}\" }"),
            (both, &format!("{both}\nmembers: [orders-1, orders-3, orders-4]")),
            (both, &format!("{both}\nrestart: {{ id: x }}")),
            (both, &format!("{both}\nstrategy: {{ finalize: manual }}")),
        ],
    );
}

/// What a newcomer's host says of its place.
#[test]
fn places() {
    let urls = "peer_urls: [http://10.0.0.3:2380]";
    golden(
        "places",
        SCALE,
        &[
            (urls, "peer_urls: http://10.0.0.3:2380"),
            (urls, "peer_urls: []"),
            (urls, "peer_urls: [10.0.0.3:2380]"),
            (urls, "peer_urls: [\"unix:///run/etcd\"]"),
            (urls, "peer_urls: [http://10.0.0.3:2380/]"),
            (urls, "peer_urls: [http://10.0.0.3:2380/raft]"),
            (urls, "peer_urls: [http://10.0.0.3]"),
            (urls, "peer_urls: [http://10.0.0.3:0]"),
            (urls, "peer_urls: [http://me@10.0.0.3:2380]"),
            (urls, "peer_urls: [\"http://10.0.0.3,10.0.0.4:2380\"]"),
            (urls, "peer_urls: [\"http://a\\tb:2380\"]"),
            (urls, "peer_urls: [http://10.0.0.3:2380, http://10.0.0.3:2380]"),
            (urls, "peer_urls: [http://10.0.0.3:2380, http://10.0.0.2:2380]"),
            ("data_dir: data/3", "data_dir: \"/srv/{{node}}\""),
            ("data_dir: data/3", "data_dir: /srv/2/"),
            ("data_dir: data/3", "data-dir: /srv/3"),
        ],
    );
}

#[test]
fn artifact() {
    golden(
        "artifact",
        SOUND,
        &[
            ("  sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n", ""),
            ("cdef0123456789abcdef0123456789abcdef0123456789abcdef", "cdef"),
            (
                "cdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "cdef0123456789abcdef0123456789abcdef0123456789abcdeg",
            ),
            ("https://mirror.example/", "ftp://mirror.example/"),
            ("https://mirror.example/", "https://:80/"),
            ("https://mirror.example/", "https://ci:hunter2@mirror.example/"),
            ("https://mirror.example/", "https://ci@mirror.example/"),
            ("etcd-v{{version}}", "etcd-v{{foo}}"),
            ("etcd-v{{version}}", "etcd-v{{node}}"),
            ("etcd-v{{version}}", "etcd-v{{version"),
            ("executable: etcd", "executable: bin/etcd"),
            ("    binary: /opt/1/current\n", ""),
            ("    binary: /opt/2/current\n", ""),
        ],
    );
}

/// A way over several releases.
#[test]
fn hops() {
    let way = SOUND
        .replace("  sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n", "")
        .replace("https://mirror.example/", "/srv/")
        .replace("\">=3.5.32, <3.6\"\nto: 3.6.14", "\">=3.4.37, <3.5\"\nto: 3.7.1\nhops: [3.5.33, 3.6.14]");
    golden(
        "hops",
        &way,
        &[
            ("hops: [3.5.33, 3.6.14]", "hops: [3.6.14]\nartifacts: {}"),
            ("hops: [3.5.33, 3.6.14]", "hops: [3.5.33]"),
            ("hops: [3.5.33, 3.6.14]", "hops: [3.6.14, 3.5.33]"),
            ("hops: [3.5.33, 3.6.14]", "hops: [3.5.33, 3.5.33, 3.6.14]"),
            ("hops: [3.5.33, 3.6.14]", "hops: [3.5.33, 3.6]"),
            ("hops: [3.5.33, 3.6.14]", "hops: 3.6.14"),
            ("etcd-v{{version}}", "etcd-v3.7.1"),
            ("  executable: etcd", "  sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
            ("kind: Upgrade", "kind: Downgrade"),
        ],
    );
    let artifact = &way[way.find("artifact:").unwrap()..way.find("state_dir:").unwrap()];
    let by_release = "artifacts:\n  3.7.1: { source: c }\n  3.5.33: { source: a }\n  3.6.14: { source: b }\n";
    let by_release = way.replace(artifact, by_release).replace("hops: [3.5.33, 3.6.14]\n", "");
    golden(
        "artifacts",
        &by_release,
        &[
            ("  3.7.1: { source: c }\n", ""),
            ("  3.6.14: { source: b }\n", ""),
            ("  3.7.1: {", "  3.8.0: {"),
            ("  3.7.1: {", "  v3.7.1: {"),
            ("  3.7.1: { source: c }", "  3.7.1: c"),
            ("  3.7.1: { source: c }", "  3.7.1: { source: c, to: d }"),
            ("to: 3.7.1", "to: 3.6.14"),
        ],
    );
}

#[test]
fn nodes() {
    golden(
        "nodes",
        SOUND,
        &[
            ("  soak: 10s", "  soak: 15m"), // longer than a turn
            ("  - name: orders-2", "  - name: orders-1"),
            ("/opt/2/current", "/opt/1/current"),
            (
                "    binary: /opt/2/current\n",
                "    binary: /opt/2/current\n    files: [{ path: /etc/etcd.yaml, source: x }]\n",
            ),
            ("source: etcd-3.5.yaml, for: \"<3.6\"", "source: etcd-3.5.yaml, for: \">=3.5\""),
            ("source: etcd-3.6.yaml, for: \">=3.6\"", "source: etcd-3.6.yaml, for: soon"),
            ("source: etcd-3.6.yaml", "source: /etc/etcd.yaml"),
            ("kind: process", "kind: systemd"),
            ("kind: process", "kind: docker"),
            ("kind: command, ", "kind: systemd, "),
            ("kind: command, ", "kind: command, argv: [etcd], "),
            ("kind: command, ", "kind: command, unit: etcd.service, "),
            ("kind: command, ", ""),
            ("      cwd: /srv", "      stop: [a]"),
            (", status: [./status]", ""),
            ("\"{{binary}}\", --name", "/usr/bin/etcd, --name"),
            ("log: orders-1.log", "log: \"{{node}}.log\""),
            ("--name, \"{{node}}\"]", "--name, \"{{host}}\"]"),
        ],
    );
    let empty = SOUND[..SOUND.find("nodes:").unwrap()].to_string() + "nodes: []\n";
    golden("nodes_empty", &empty, &[("nodes: []", "nodes: [ ]")]);
    golden(
        "nodes_without_binary",
        RESTART,
        &[
            ("argv: [etcd]", "argv: [\"{{binary}}\"]"),
            (
                "    runtime: { kind: process, argv: [etcd] }\n",
                "    runtime: { kind: process, argv: [etcd] }\nhooks: { after_node: [[x, \"{{binary}}\"]] }\n",
            ),
        ],
    );
}

#[test]
fn units() {
    let command = "{ kind: command, start: [sv, up, etcd], stop: [sv, down, etcd], status: [./status] }";
    let unit = |text: &str| format!("{{ kind: systemd, {text} }}");
    let units = [
        "user: etcd",
        "units: etcd.service",
        "unit: etcd",
        "unit: etcd.socket",
        "unit: [etcd.service]",
        "unit: \"\"",
        "unit: .service",
        "unit: /etc/systemd/system/etcd.service",
        "unit: \"etcd 1.service\"",
        "unit: \"{{node}}.service\"",
        "unit: etcd@.service",
        "unit: \"@1.service\"",
        "unit: etcd.service, argv: [etcd]",
    ];
    let units = units.map(unit);
    golden("units", SOUND, &units.each_ref().map(|unit| (command, unit.as_str())));
    let two =
        SOUND.replace(command, &unit("unit: etcd.service")).replace("- name: orders-1", "- name: orders-3") + "# end\n";
    let third = "  - name: orders-1\n    runtime: { kind: systemd, unit: etcd.service }\n    binary: /opt/3/current\nstrategy:\n";
    golden("units_shared", &two, &[("strategy:\n", third)]);
}

#[test]
fn backup() {
    let line = |text: &str| format!("state_dir: state\nbackup: {text}");
    let wrong = [
        "{ keep: 3 }",
        "{ dir: /var/backups, keep: 0 }",
        "{ dir: /var/backups, keep: all }",
        "{ dir: [a] }",
        "/var/backups",
        "{ dir: a, kept: 1 }",
    ];
    let wrong = wrong.map(line);
    golden("backup", SOUND, &wrong.each_ref().map(|text| ("state_dir: state", text.as_str())));
}

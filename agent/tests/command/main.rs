//! The real binary, typed at: what it prints where, and what it exits with. Nothing here needs a cluster.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::{
    fs,
    net::TcpListener,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

mod input;
mod people;
mod report;

fn agent(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_agent")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn exit(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn object(output: &Output) -> Value {
    let stdout = text(&output.stdout);
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    let object: Value = serde_json::from_str(stdout).unwrap();
    assert_eq!(object["format"], 1);
    assert_eq!(object["exit"], exit(output));
    object
}

struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A playbook for a member at this address.
    fn playbook(&self, endpoint: &str) -> String {
        let path = self.path("upgrade.yaml");
        let yaml = format!(
            "apiVersion: baton/v1\nkind: Upgrade\ncluster: {{ name: c, endpoints: [\"{endpoint}\"] }}\n\
             from: \">=3.4\"\nto: 3.5.30\nartifact: {{ source: /srv/etcd }}\nstate_dir: {}\nnodes:\n  - name: m1\n    \
             binary: /opt/etcd\n    runtime: {{ kind: process, argv: [\"{{{{binary}}}}\"], log: /var/log/m1 }}\n",
            self.path("state").display()
        );
        fs::write(&path, yaml).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// An address where nobody listens: it was free a moment ago.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn validate_prints_a_playbook_that_is_its_own_normal_form() {
    let folder = Folder::new();
    let once = agent(&["validate", &folder.playbook("http://127.0.0.1:1")]);
    assert_eq!(exit(&once), 0, "{}", text(&once.stderr));
    let again = folder.path("again.yaml");
    fs::write(&again, &once.stdout).unwrap();
    let twice = agent(&["validate", again.to_str().unwrap()]);
    assert_eq!(text(&once.stdout), text(&twice.stdout));
    let json = object(&agent(&["validate", again.to_str().unwrap(), "--output", "json"]));
    assert_eq!((&json["reason"], &json["playbook"]["to"]), (&"valid".into(), &"3.5.30".into()));
}

#[test]
fn a_wrong_playbook_is_exit_2_with_its_place_and_a_wrong_command_line_too() {
    let folder = Folder::new();
    let bad = folder.path("bad.yaml");
    fs::write(&bad, "apiVersion: baton/v1\nkind: Upgrad\n").unwrap();
    for verb in ["validate", "plan", "status"] {
        let told = agent(&[verb, bad.to_str().unwrap()]);
        assert_eq!(exit(&told), 2, "{verb}");
        assert!(text(&told.stderr).contains("bad.yaml:2:7: "), "{verb}: {}", text(&told.stderr));
        assert!(text(&told.stderr).contains("^^^^^^"), "{verb}: {}", text(&told.stderr));
        let json = object(&agent(&[verb, bad.to_str().unwrap(), "--output", "json"]));
        assert_eq!(json["reason"], "playbook", "{verb}");
    }
    for line in
        [&["fly"][..], &["plan"], &["validate", "x.yaml", "--log", "agent=loud"], &["status", "--endpoints", "::"]]
    {
        assert_eq!(exit(&agent(line)), 2, "{line:?}");
        let json = object(&agent(&[line, &["--output=json"]].concat()));
        assert_eq!(json["reason"], "usage", "{line:?}");
    }
}

#[test]
fn a_cluster_that_nobody_reaches_is_exit_3_and_touches_nothing() {
    let folder = Folder::new();
    let playbook = folder.playbook(&nobody());
    for line in [&["plan", &playbook][..], &["status", &playbook], &["abandon", &playbook, "m1"]] {
        let told = agent(line);
        assert_eq!(exit(&told), 3, "{line:?}: {}", text(&told.stderr));
        assert!(text(&told.stderr).contains("reason unreachable"), "{line:?}: {}", text(&told.stderr));
    }
    assert!(!folder.path("state").exists());
}

#[test]
fn what_cannot_be_written_changes_no_exit_code() {
    let folder = Folder::new();
    let playbook = folder.playbook("http://127.0.0.1:1");
    for verb in [&["validate", &playbook][..], &["validate", &playbook, "--output", "json"], &["run", "--help"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let status = Command::new(env!("CARGO_BIN_EXE_agent")).args(verb).stdout(full).stderr(Stdio::null()).status();
        assert_eq!(status.unwrap().code(), Some(0), "{verb:?}");
    }
}

#[test]
fn the_help_of_run_prints_the_table_of_reasons() {
    let help = agent(&["run", "--help"]);
    assert_eq!(exit(&help), 0);
    for line in agent::report::stop::table().lines() {
        let first = line.trim();
        assert!(text(&help.stdout).contains(first), "{first}\n{}", text(&help.stdout));
    }
}

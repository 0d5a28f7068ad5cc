//! Mistakes in the playbook, told by the real binary as a person sees them. Each class of mistake has its row
//! among the agent's own tests.

use std::{fs, process::Command};

const SOUND: &str = "\
apiVersion: baton/v1
kind: Upgrade
cluster:
  name: orders
  endpoints: [http://127.0.0.1:1]
from: \">=3.4, <3.5\"
to: 3.5.30
artifact: { source: /nowhere }
nodes:
  - name: orders-1
    runtime: { kind: process, argv: [\"{{binary}}\"], log: /nowhere }
    binary: /nowhere
";

/// The sound playbook with one thing wrong must be refused with these words.
fn is_shown(sound: &str, wrong: &str, expected: &[&str]) {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("upgrade.yaml");
    assert_eq!(SOUND.matches(sound).count(), 1, "{sound}");
    fs::write(&path, SOUND.replace(sound, wrong)).expect("written");
    let said = Command::new(tests::agent::executable().expect("an agent")).arg("run").arg(&path).output().expect("ran");
    assert_eq!(said.status.code(), Some(2));
    let text = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    for wanted in expected {
        assert!(text.contains(wanted), "`{wanted}` is missing in:\n{text}");
    }
    assert_eq!(fs::read_dir(home.path()).expect("readable").count(), 1, "nothing else was made");
}

#[test]
fn a_mistake_is_shown_where_it_is() {
    let unknown = ["upgrade.yaml:4:3:", "\n4 |   nmae: orders\n  |   ^^^^\n", "\nexpected: `name`"];
    is_shown("name: orders\n", "nmae: orders\n", &unknown);
    let no_release = ["upgrade.yaml:7:5:", "\n7 | to: 3.5\n  |     ^^^\n", "\nexpected: "];
    is_shown("to: 3.5.30", "to: 3.5", &no_release);
}

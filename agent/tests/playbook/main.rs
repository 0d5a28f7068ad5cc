//! Playbooks from outside: each mistake gets its one clear text, each example is read, and nothing panics.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod examples;
mod files;
mod mistakes;
mod reference;

use std::path::Path;

use agent::playbook::{Playbook, PlaybookError, Runtime};

/// A playbook without a mistake, for tests to spoil.
const SOUND: &str = include_str!("sound.yaml");
const RESTART: &str = include_str!("restart.yaml");
const SCALE: &str = include_str!("scale.yaml");
const REPLACE: &str = include_str!("replace.yaml");

/// The same playbook without what its normal form leaves out.
fn without_secrets(mut playbook: Playbook) -> Playbook {
    for node in &mut playbook.nodes {
        if let Runtime::Process(process) = &mut node.runtime {
            process.env.clear();
        }
    }
    assert!(!playbook.has_secrets());
    playbook
}

fn parse(source: &str) -> Result<Playbook, PlaybookError> {
    Playbook::parse(source, Path::new("upgrade.yaml"))
}
